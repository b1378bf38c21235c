/** The days of a conversation. */

const DAY_MS = 86_400_000;
const near = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const far = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });

export const isSameDay = (one: number, other: number) =>
  new Date(one).toDateString() === new Date(other).toDateString();

export function dayName(at: number, now = Date.now()): string {
  if (isSameDay(at, now)) return "Today";
  if (isSameDay(at, now - DAY_MS)) return "Yesterday";
  return (new Date(at).getFullYear() === new Date(now).getFullYear() ? near : far).format(at);
}
