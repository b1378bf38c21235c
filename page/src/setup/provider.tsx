import { Badge } from "../ui/parts.tsx";
import { type Course, isInUse, type Provider } from "./course.ts";

/** The first step: who answers. */
export function ProviderChoice({ course }: { course: Course }) {
  const offer = course.offer.value!;
  return (
    <>
      <h2>Who shall answer?</h2>
      <p class="setup-lead">
        {offer.needed
          ? "For now a built-in demonstration answers. Choose where a real model runs: at a provider, or on a machine of yours."
          : `Now it is ${offer.model.name}. Choose another at any time.`}
      </p>
      <ul class="setup-providers">
        {offer.providers.map((each) => (
          <li key={each.name}>
            <button type="button" class="setup-provider" onClick={() => course.choose(each)}>
              <strong>{each.label}</strong>
              <span class="faint">{told(each)}</span>
              {isInUse(offer, each) && <Badge tone="good">in use</Badge>}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function told(provider: Provider): string {
  if (provider.has_key && provider.needs_key) return "its key is there already";
  if (provider.needs_key) return "with a key";
  return provider.base_url || "at an address of your own";
}
