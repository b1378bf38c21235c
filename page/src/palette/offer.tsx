import { pieces } from "../sessions/snippet.tsx";
import { Icon } from "../ui/icon.tsx";
import type { Offer } from "./commands.ts";
import { Keys } from "./pressed.tsx";

interface OfferLineProps {
  id: string;
  offer: Offer;
  isChosen: boolean;
  onPoint: () => void;
  onRun: () => void;
}

/** One thing to choose; the letters that were typed stand out in its name. */
export function OfferLine({ id, offer: { command, at }, isChosen, onPoint, onRun }: OfferLineProps) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: The keys are those of the field.
    // biome-ignore lint/a11y/useFocusableInteractive: The focus stays in the field, which names the chosen one.
    <div class="offer" role="option" id={id} aria-selected={isChosen} onPointerMove={onPoint} onClick={onRun}>
      <Icon name={command.icon} size={16} />
      <span class="offer-label">
        {pieces(
          command.label,
          at.map((each) => [each, each + 1] as const),
        ).map((piece) => (piece.marked ? <b key={piece.at}>{piece.text}</b> : piece.text))}
      </span>
      {command.keys ? <Keys keys={command.keys} /> : <span class="offer-group">{command.group}</span>}
    </div>
  );
}
