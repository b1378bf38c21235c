import { Command } from "../../ui/parts.tsx";

/** Where deliveries of a route go, as whoever reaches this page reaches it. */
export function Address({ path }: { path: string }) {
  return <Command text={location.origin + path} />;
}
