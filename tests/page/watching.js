/* Watches a document from inside, as it is painted: no message is there twice or goes away, no answer loses a word. */
(() => {
  const NUMBER = /^m\d{5}\b/;
  const texts = (selector) => [...document.querySelectorAll(selector)].map((each) => each.innerText.trim());
  const numbers = (selector) => texts(selector).flatMap((each) => each.match(NUMBER) ?? []);
  const words = (row) =>
    [...row.querySelectorAll("[data-role=assistant]")].map((each) => each.innerText).join(" ").split(/\s+/).join(" ");
  const told = new Set();
  let place = location.hash;
  let waiting = [];
  let said = new Map();

  const tell = (kind, what) => {
    const line = `${kind}: ${what}`;
    if (told.has(line)) return;
    told.add(line);
    window.tellStorm(line);
  };

  const look = () => {
    if (location.hash !== place) {
      place = location.hash;
      [waiting, said] = [[], new Map()];
      /* What is there now may still be that of the place before. */
      return;
    }
    const arrived = numbers("[data-role=user] .message-text");
    const leaving = numbers(".on-its-way-text");
    const all = [...arrived, ...leaving];
    all.filter((each, index) => all.indexOf(each) !== index).forEach((each) => tell("twice", each));
    /* Who reads further up does not see what arrives at the end, nor who is there what has arrived further up. */
    const scroller = document.querySelector("section.scroller");
    const isAtEnd = scroller && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2;
    const isInSight = (each) => isAtEnd && !(each < arrived[0]);
    const gone = waiting.filter((each) => isInSight(each) && !all.includes(each));
    const there = `${arrived} and on their way ${leaving}`;
    if (gone.length) tell("gone", `${gone} of ${waiting} at ${place}, where there are ${there}`);
    /* Where a session begins, a message is only until its session is there. */
    waiting = place.startsWith("#/s/") ? leaving : [];
    for (const row of document.querySelectorAll("[data-turn]")) {
      const [before, now] = [said.get(row.dataset.turn) ?? "", words(row)];
      if (!now.startsWith(before)) tell("changed", `${row.dataset.turn} from ${before} to ${now}`);
      said.set(row.dataset.turn, now);
    }
  };

  let awaited = false;
  /* What is there after a frame has been painted is what a person has seen. */
  const seen = () => {
    if (awaited) return;
    awaited = true;
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        awaited = false;
        look();
      };
      port2.postMessage(null);
    });
  };
  new MutationObserver(seen).observe(document, { childList: true, subtree: true, characterData: true });
})();
