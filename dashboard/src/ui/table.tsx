// A table that becomes a list of cards where it is narrow: each cell knows its column's name.
import type { ComponentChildren } from "preact";

export interface Column<T> {
  name: string;
  /** Numbers stand to the right. */
  isNumber?: boolean;
  /** The cell that heads the card on a phone. */
  isTitle?: boolean;
  /** On a phone it needs a line of its own, although it is a number. */
  isLong?: boolean;
  /** On a phone it stands in the card's corner. */
  isCorner?: boolean;
  /** Where the name is only for those who cannot see the table. */
  isNameHidden?: boolean;
  /** Takes what is left, and is cut rather than wrapped. */
  isWide?: boolean;
  /** Stands in the head instead of the name. */
  head?: ComponentChildren;
  cell: (row: T) => ComponentChildren;
}

interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  /** The row one is at by keyboard; not given where one cannot be. */
  focused?: string | null;
}

export function Table<T>({ label, columns, rows, keyOf, focused }: TableProps<T>) {
  return (
    <div class="table-box">
      <table class="table" aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classOf(column)}>
                {column.head ?? (column.isNameHidden ? <span class="only-heard">{column.name}</span> : column.name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = keyOf(row);
            return (
              <tr key={key} data-key={key} class={key === focused ? "is-focused" : ""} tabIndex={focused === undefined ? undefined : -1} aria-current={key === focused ? "true" : undefined}>
                {columns.map((column) => (
                  <td key={column.name} class={classOf(column)} data-name={column.isNameHidden ? "" : column.name}>
                    <div class="cell">{column.cell(row)}</div>
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function classOf<T>(column: Column<T>): string {
  const names = [
    column.isNumber && "is-number",
    column.isTitle && "is-title",
    column.isWide && "is-wide",
    column.isLong && "is-long",
    column.isCorner && "is-corner",
  ];
  return names.filter(Boolean).join(" ");
}
