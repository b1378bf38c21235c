/** Text with the found words marked; `marks` are where each begins and ends. */
export function Snippet({ text, marks }: { text: string; marks: readonly (readonly [number, number])[] }) {
  return (
    <>{pieces(text, marks).map((piece) => (piece.marked ? <mark key={piece.at}>{piece.text}</mark> : piece.text))}</>
  );
}

interface Piece {
  at: number;
  text: string;
  marked: boolean;
}

export function pieces(text: string, marks: readonly (readonly [number, number])[]): Piece[] {
  const made: Piece[] = [];
  let at = 0;
  for (const [begin, end] of marks) {
    if (begin > at) made.push({ at, text: text.slice(at, begin), marked: false });
    made.push({ at: begin, text: text.slice(begin, end), marked: true });
    at = end;
  }
  if (at < text.length) made.push({ at, text: text.slice(at), marked: false });
  return made;
}
