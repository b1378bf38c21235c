/** Where links and pictures in Markdown may lead.  The page asks nobody but its own gateway for anything. */

const LINKED = new Set(["http:", "https:", "mailto:"]);
const DRAWN = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-zA-Z0-9+/=\s]+$/;
/** Only a picture of the gateway: what else it answers may be private, or never end. */
const OWN = /^\/api\/turns\/[\w-]+\/images\/\d+$/;

/** Return the address of a link; null where it leads nowhere that a person should be sent. */
export function linked(href: string): string | null {
  try {
    const url = new URL(href);
    return LINKED.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Return the address of a picture that can be shown here; null where somebody else would have to be asked for it. */
export function drawn(href: string): string | null {
  return DRAWN.test(href) || OWN.test(href) ? href : null;
}
