import { useState } from "preact/hooks";
import type { MessageItem } from "../../journal/view.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { useFetched } from "../fetched.ts";

/** The pictures that came with a message; each opens to its full size. */
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
  const { source, isMissing } = useFetched(path);
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
