// The page of a gateway: signs this browser in, and shows that the gateway is there.

const LOOK_MS = 5000;
// Browsers show the cookie to every port of this machine; what is stored is for this page alone.
const PROOF = "holdfast.proof";
const find = (id) => document.getElementById(id);

class Refused extends Error {
  constructor(status, problem) {
    super(problem ? [problem.message, problem.hint].filter(Boolean).join("; ") : `The gateway answered ${status}.`);
    this.status = status;
  }
}

async function ask(path, body) {
  const proof = localStorage.getItem(PROOF);
  const headers = proof ? { "X-Holdfast-Proof": proof } : {};
  const options = body === undefined ? { headers } : {
    method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const response = await fetch(path, { cache: "no-store", ...options });
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, answer?.error);
  return answer;
}

// The code is taken out of the address at once, so that no bookmark, history or screenshot keeps it.
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname);
  return code;
}

async function signIn(credentials) {
  localStorage.setItem(PROOF, (await ask("/api/sign-in", credentials)).proof);
}

function show(id) {
  for (const each of ["loading", "door", "house"]) find(each).hidden = each !== id;
}

function tell(text) {
  find("notice").textContent = text ? text[0].toUpperCase() + text.slice(1) + (/[.?!…]$/.test(text) ? "" : ".") : "";
  find("notice").hidden = !text;
}

async function begin() {
  const code = takeCode();
  let problem = "";
  if (code) {
    try {
      await signIn({ code });
    } catch (error) {
      problem = error.message;
    }
  }
  await enter(problem);
}

async function enter(problem = "") {
  let me = null;
  try {
    me = await whoAmI();
  } catch (error) {
    problem = error instanceof Refused ? error.message : "the gateway does not answer; is it running?";
  }
  tell(problem);
  if (!me) return openDoor();
  find("who").textContent = me.how === "guest"
    ? "This machine needs no key. To change settings and allow commands, sign in with a link: holdfast link"
    : `You are signed in${me.owner === "local" ? "" : ` as ${me.owner}`}.`;
  find("sign-out").hidden = me.how !== "cookie";
  find("base-url").textContent = `${location.origin}/v1`;
  show("house");
  await look();
}

async function whoAmI() {
  try {
    const me = await ask("/api/me");
    // Without its proof a cookie opens too little to be of use.
    if (me.how !== "cookie" || localStorage.getItem(PROOF)) return me;
  } catch (error) {
    if (error.status !== 401) throw error;
  }
  // An old cookie is in the way of whoever needs none.
  await ask("/api/sign-out", {});
  try {
    return await ask("/api/me");
  } catch (error) {
    if (error.status !== 401) throw error;
    return null;
  }
}

async function openDoor() {
  show("door");
  find("sign-out").hidden = true;
  const ways = await ask("/api/sign-in").catch(() => ({ password: false }));
  find("password-form").hidden = !ways.password;
  if (ways.password) find("password").focus();
}

async function look() {
  if (find("house").hidden) return;
  try {
    showStatus(await ask("/api/status"));
  } catch (error) {
    if (error.status === 401) return enter();
    find("light").className = "light away";
    find("state").textContent = error instanceof Refused ? error.message : "The gateway does not answer; looking again…";
  }
  setTimeout(look, LOOK_MS);
}

function showStatus(status) {
  find("version").textContent = status.version;
  find("light").className = `light ${status.ready ? "ready" : ""}`;
  find("state").textContent = status.problem ?? (status.ready ? "Ready" : status.state);
  const facts = {
    Model: status.agent.demonstration ? "built-in demonstration; set model.name for a real one" : status.agent.model,
    "At work": `${status.running} ${status.running === 1 ? "turn" : "turns"}`,
    "Questions for you": status.questions || null,
    Answered: status.accepted ? `${status.settled} of ${status.accepted} messages` : null,
    Running: `for ${duration(status.uptime_s)}`,
    Home: status.home || null,
  };
  find("facts").replaceChildren(...Object.entries(facts).filter(([, fact]) => fact).flatMap(([name, fact]) => {
    const title = document.createElement("dt");
    const value = document.createElement("dd");
    title.textContent = name;
    value.textContent = fact;
    return [title, value];
  }));
}

function duration(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([each]) => seconds >= each) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

find("password-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = find("password");
  const button = event.submitter;
  button.disabled = true;
  try {
    await signIn({ password: field.value });
    field.value = "";
    await enter();
  } catch (error) {
    tell(error instanceof Refused ? error.message : "the gateway does not answer; try again");
    field.select();
  } finally {
    button.disabled = false;
  }
});

find("sign-out").addEventListener("click", async () => {
  await ask("/api/sign-out", {}).catch(() => null);
  localStorage.removeItem(PROOF);
  await enter();
});

for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", async () => {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // Without TLS, and away from this machine, a page may not write there.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

// A link that is opened in a tab that shows the page already changes nothing but the part behind the #.
addEventListener("hashchange", begin);
begin();
