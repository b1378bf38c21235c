/** Where a session comes from, as people read it. */

import type { SourceView } from "../wire.ts";

const NAMES: readonly (readonly [keyof SourceView, string])[] = [
  ["chat_name", "Chat"],
  ["chat_id", "Chat id"],
  ["chat_type", "Type"],
  ["thread_id", "Thread"],
  ["user_name", "User"],
  ["user_id", "User id"],
];

/** Return one line for each thing that the channel said. */
export function sourceLines(source: SourceView): readonly string[] {
  return NAMES.flatMap(([field, name]) => (source[field] ? [`${name}: ${source[field]}`] : []));
}
