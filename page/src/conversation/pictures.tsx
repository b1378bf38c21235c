/** Pictures that the gateway stores. */

import { useEffect, useState } from "preact/hooks";
import { getFile } from "../api.ts";
import type { MessageItem } from "../journal/view.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";

/** The pictures of a message; each opens in full size. */
export function Pictures({ item }: { item: MessageItem }) {
  if (!item.images.length) return null;
  return (
    <div class="pictures">
      {item.images.map((_, number) => (
        <Picture
          key={number}
          path={`/api/turns/${encodeURIComponent(item.turnId)}/images/${number}`}
          number={number + 1}
        />
      ))}
    </div>
  );
}

function Picture({ path, number }: { path: string; number: number }) {
  const [isOpen, setOpen] = useState(false);
  const { source, isMissing } = useGatewayPicture(path);
  const name = `Picture ${number}`;
  if (isMissing)
    return (
      <span class="picture missing">
        <Icon name="image" size={16} /> {name} cannot be shown
      </span>
    );
  return (
    <>
      <button type="button" class="picture" aria-label={`${name}: open`} onClick={() => setOpen(true)}>
        {source && <img src={source} alt={name} />}
      </button>
      {isOpen && source && (
        <Dialog title={name} wide onClose={() => setOpen(false)}>
          <img class="picture-whole" src={source} alt={name} />
        </Dialog>
      )}
    </>
  );
}

interface FetchedPicture {
  /** The object URL; null until the picture is loaded. */
  source: string | null;
  isMissing: boolean;
}

/** Load a picture with a signed request, which an image element cannot send. */
export function useGatewayPicture(path: string): FetchedPicture {
  const [found, setFound] = useState<FetchedPicture>({ source: null, isMissing: false });
  useEffect(() => {
    const ending = new AbortController();
    let source: string | null = null;
    fetchPicture(path, ending.signal).then(
      (blob) => {
        if (ending.signal.aborted) return;
        source = URL.createObjectURL(blob);
        setFound({ source, isMissing: false });
      },
      () => ending.signal.aborted || setFound({ source: null, isMissing: true }),
    );
    return () => {
      ending.abort();
      if (source) URL.revokeObjectURL(source);
    };
  }, [path]);
  return found;
}

async function fetchPicture(path: string, signal: AbortSignal): Promise<Blob> {
  const blob = await getFile(path, { signal });
  if (!blob.type.startsWith("image/")) throw new Error("The picture does not exist.");
  return blob;
}
