import type { ComponentChildren } from "preact";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** Takes the room that the others leave. */
  wide?: boolean;
}

interface TableProps<T> {
  /** What is listed, for those who do not see it. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}

/** Rows and columns; on a phone each row is a card, in which every value has its title beside it. */
export function Table<T>({ label, columns, rows, keyOf }: TableProps<T>) {
  return (
    <table class="rows" aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.title} scope="col" class={column.wide ? "wide" : undefined}>
              {column.title || <span class="unseen">What can be done</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column) => (
              <Cell key={column.title} column={column} row={row} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell<T>({ column, row }: { column: Column<T>; row: T }) {
  const inside = column.cell(row);
  return (
    <td data-title={column.title} class={column.wide ? "wide" : undefined}>
      {inside && <div class="rows-cell">{inside}</div>}
    </td>
  );
}
