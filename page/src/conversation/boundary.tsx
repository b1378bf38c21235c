import { Component, type ComponentChildren } from "preact";
import { told } from "../api.ts";

/** What cannot be drawn is told where it stands, and takes nothing else with it. */
export class Boundary extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state = { error: null };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return <p class="call-more">This part cannot be shown: {told(this.state.error)}</p>;
  }
}
