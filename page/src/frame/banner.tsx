import { awaySince } from "../connection.ts";
import { clockTime } from "../format.ts";
import { Icon } from "../ui/icon.tsx";

/** Says calmly that the gateway is away, and that nothing is lost by it. */
export function Banner() {
  const since = awaySince.value;
  return (
    <div class="banner-place" role="status">
      {since !== null && (
        <p class="banner">
          <Icon name="offline" size={16} />
          <span>
            The gateway has not answered since {clockTime(since)}. Your messages are kept and will be sent when it is
            back.
          </span>
        </p>
      )}
    </div>
  );
}
