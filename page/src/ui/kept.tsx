/** Components that are drawn again only when what they are given has changed. */

import { Component, type ComponentChildren, type FunctionComponent } from "preact";

/** Return a component that stays as it is while its properties do. */
export function kept<P extends object>(draw: (props: P) => ComponentChildren): FunctionComponent<P> {
  const Drawn: FunctionComponent<P> = draw;
  class Kept extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return differ(this.props, next);
    }

    override render() {
      return <Drawn {...this.props} />;
    }
  }
  return (props) => <Kept {...props} />;
}

function differ(before: object, after: object): boolean {
  const [old, fresh] = [Object.entries(before), new Map(Object.entries(after))];
  return old.length !== fresh.size || old.some(([name, value]) => fresh.get(name) !== value);
}
