// Written by page/wire.py from the gateway's own definitions; `make check` compares.

export type EntryKind =
  | "turn.accepted"
  | "turn.started"
  | "text"
  | "reasoning"
  | "tool.started"
  | "tool.finished"
  | "approval.asked"
  | "approval.answered"
  | "note"
  | "turn.deferred"
  | "usage"
  | "context.compacted"
  | "message.joined"
  | "turn.completed"
  | "turn.failed"
  | "turn.cancelled"
  | "turn.interrupted"
  | "turn.recovered"
  | "turn.undone"
  | "turn.revised";

export type Role = "prior" | "user" | "assistant" | "reasoning" | "tool" | "question" | "note" | "marker";

export type TurnState = "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled" | "interrupted";

export type TurnCause =
  | "crash"
  | "restart_timeout"
  | "shutdown_timeout"
  | "disk_full"
  | "user"
  | "superseded"
  | "session_ended"
  | "session_suspended"
  | "model_unavailable";

export type SessionState = "open" | "suspended" | "ended";

export type CallState = "planned" | "awaiting_approval" | "started" | "ok" | "error" | "unknown";

export type DeliveryState = "pending" | "sending" | "retry" | "unknown" | "delivered" | "failed" | "expired";

export type SegmentState = "open" | "sealed" | "committing" | "committed" | "waived";

export type ProcessState = "running" | "exited" | "lost";

export type About = "answer" | "approval" | "budget";

export type Decision = "once" | "session" | "always" | "deny";

export type Busy = "queue" | "interrupt" | "steer" | "reject";

/** What can be asked of the gateway itself, with a slash before it. */
export const COMMANDS = {
  new: { argument: "", help: "begin a new conversation" },
  stop: { argument: "", help: "stop what is running and leave this conversation" },
  status: { argument: "", help: "show where this conversation stands" },
  resume: { argument: "[NAME]", help: "go on with an answer that was cut off, or with another conversation" },
  sessions: { argument: "", help: "list your conversations" },
  title: { argument: "[TEXT]", help: "name this conversation, or show its name" },
  retry: { argument: "", help: "answer the last message anew" },
  undo: { argument: "", help: "leave the last exchange out" },
  model: { argument: "[NAME]", help: "choose the model of this conversation, or show it" },
  approve: { argument: "[ID] [once|session|always]", help: "allow what the agent asks permission for" },
  deny: { argument: "[ID] [REASON]", help: "refuse what the agent asks permission for" },
  queue: { argument: "TEXT", help: "send a message that waits for the current answer" },
  steer: { argument: "TEXT", help: "send a message that joins the current answer" },
  background: { argument: "TEXT", help: "do something on the side and report back here" },
  compress: { argument: "", help: "let a summary stand for the older part of this conversation" },
  usage: { argument: "", help: "show the tokens and the cost of this conversation and of today" },
  help: { argument: "", help: "show this list" },
} as const;

/** How an account stands with its platform. */
export type AccountState = "connected" | "connecting" | "refused" | "stopped" | "taken";

/** What the turn of a session is doing that is not settled yet. One that is `RETRYING` waits for its model. */
export type Activity = "queued" | "retrying" | "running" | "waiting";

/** Who answers, and with what: `mcp` says of each server how it is. `unsafe` says that commands run unasked and without a sandbox. */
export interface AgentView {
  model?: string;
  demonstration?: boolean;
  tools?: string[];
  sandbox?: string;
  unsafe?: boolean;
  mcp?: Record<string, string>;
}

/** What a person says to the question that a turn waits for; without a `question_id`, to the last one. */
export interface Answer {
  text: string;
  question_id?: string | null;
}

/** As what a person is let in: a guest has tools that use their own data only, a trusted person all tools, and the operator may decide everything. */
export interface Approval {
  role?: PeopleRole;
}

/** A question that a turn waits with. `id` is short, for people; the turn's id and the question's are the whole. */
export interface ApprovalView {
  id: string;
  turn_id: string;
  session_id: string;
  question_id: string;
  about: About;
  text: string;
  choices: string[];
  detail: Record<string, unknown>;
  asked_at: number;
  expires_at: number | null;
}

/** A button below a message. */
export interface Button {
  label: string;
  value: string;
}

/** What is to be changed about a session; what is None stays as it is. */
export interface Change {
  title?: string | null;
  pinned?: boolean | null;
  archived?: boolean | null;
  model?: string | null;
}

/** Settings of an account that are tried and not kept. They go before those that the account `name` has. */
export interface ChannelPlan {
  kind: string;
  name?: string;
  settings?: Record<string, string>;
}

/** What a platform said when it was asked who the account is. */
export interface ChannelTrial {
  ok: boolean;
  problem: string | null;
  hint: string | null;
  bot_id?: string | null;
  bot_name?: string | null;
  bot_url?: string | null;
}

/** An account of a chat platform. `last_receive_at` is when the platform last answered a request for messages. */
export interface ChannelView {
  name: string;
  kind: string;
  enabled: boolean;
  state: AccountState;
  last_receive_at: number | null;
  problem: string | null;
  pending_deliveries: number;
  bot_name: string | null;
  bot_url: string | null;
  home: string | null;
}

/** How the operator decides about a person who asks. */
export type Choice = "deny" | "guest" | "me" | "trusted";

/** The model of the configuration file. */
export interface ChosenModel {
  name: string;
  base_url: string;
  has_key: boolean;
}

/** A node whose machine has a clock that is `off_ms` ahead or, below zero, behind; jobs and expiry do not go by it. */
export interface ClockOff {
  node: string;
  off_ms: number;
}

/** Whether something was owed and is paid now. */
export interface Committed {
  committed: boolean;
}

/** What memory has yet to be given, what it was given, and what is remembered. */
export interface Counts {
  unpaid?: number;
  open?: number;
  owed?: number;
  failed?: number;
  parked?: number;
  committing?: number;
  committed?: number;
  waived?: number;
  facts?: number;
  profile?: boolean;
}

/** What a person signs in with: the code of a link, or the password. */
export interface Credentials {
  code?: string;
  password?: string;
}

/** What memory has yet to be given, in segments. `unpaid` is the sum of `open`, `owed`, `parked` and `committing`. `open` ones still gather turns: their conversation is not over. `owed` ones wait for their provider, and `failed` are those of them that were tried in vain. `parked` ones wait for a provider that cannot be opened here. `committing` ones are being handed over. */
export interface Debt {
  unpaid?: number;
  open?: number;
  owed?: number;
  failed?: number;
  parked?: number;
  committing?: number;
}

/** A session is gone, with all that belonged to it. */
export interface Deleted {
  deleted?: boolean;
}

/** One part of an answer, or a notice, on its way to one target. */
export interface Delivery {
  id: string;
  turn_id: string | null;
  session_id: string | null;
  target: string;
  part: number;
  text: string;
  created_at: number;
  due_at: number;
  state?: DeliveryState;
  attempt?: number;
  repeats?: number;
  fence?: number;
  receipt?: string | null;
  error?: string | null;
  settled_at?: number | null;
  owner?: string;
  extra?: Extra;
}

/** What is remembered, as Markdown that can be edited. */
export interface Document {
  markdown: string;
}

/** A stop on its way: how many turns still run, and the seconds they have left. */
export interface Drain {
  restart: boolean;
  running: number;
  seconds_left: number;
}

/** A document of what is remembered, as it was read and as it is to be. Only the difference is applied. */
export interface Edit {
  base: string;
  markdown: string;
}

/** What an edit has changed, and what is remembered after it. */
export interface Edited {
  added: number;
  changed: number;
  removed: number;
  known: number;
  left_out: number;
  markdown: string;
}

/** What went wrong, and what to do instead. Some refusals say more: a state, a turn, the byte of the body, a setting. */
export interface Error {
  code: string;
  message: string;
  hint: string | null;
  state?: string | null;
  turn_id?: string | null;
  offset?: number | null;
  key?: string | null;
}

/** What a chat shows with the text; other targets leave it out. */
export interface Extra {
  buttons?: Button[][];
  file?: KeptFile | null;
  reply_to?: string;
  is_quiet?: boolean;
  question_id?: string;
}

/** A segment that could not be replayed, and why. */
export interface Failure {
  segment_id: string;
  session_id: string;
  error: string;
}

/** What one check found, and, unless all is well, what to do about it. */
export interface Finding {
  name: string;
  level: Level;
  found: string;
  advice?: string;
}

/** What became of one due instant. */
export interface Fired {
  instant: number;
  turn_id: string | null;
  outcome: JobOutcome;
}

/** When a schedule is due next, and what the time is called that its hours are meant in. */
export interface Forecast {
  instants: number[];
  zone: string;
}

/** What is to be forgotten: memories by their ids, all that came from a session, or everything. */
export interface Forgetting {
  ids?: string[];
  session_id?: string | null;
  everything?: boolean;
}

/** How much is not remembered any more: here, and `elsewhere`, by other providers. `missing` are unknown ids. `owed` segments will be remembered once they are committed. `problems` say what could not be forgotten elsewhere. */
export interface Forgotten {
  forgotten: number;
  elsewhere?: number;
  missing?: string[];
  owed?: number;
  problems?: string[];
}

/** How much of a session a fork takes along: all up to and with a turn, or before one; without either, all of it. */
export interface Fork {
  through?: string | null;
  before?: string | null;
}

/** Something that is allowed without asking: in one session, or in all of them. */
export interface GrantView {
  id: string;
  text: string;
  session_id: string | null;
  granted_at: number;
}

/** Who answers, and whether it can be given work. `problem` is there also where it can, while part of it is damaged. */
export interface Health {
  version: string;
  node: string;
  pid: number;
  state: Phase;
  ready: boolean;
  problem?: string | null;
}

/** Something that a search found, and where. The words stand in `snippet` between `marks`, which count as browsers do, in UTF-16 code units. */
export interface HitView {
  session_id: string;
  turn_id: string | null;
  seq: number;
  kind: string;
  at: number;
  text: string;
  label: string;
  channel: string;
  snippet: string;
  marks: [number, number][];
}

/** A picture that came with a message. */
export interface Image {
  media_type: string;
  data: string;
}

/** One thing in a transcript. `recovered` marks what was shown by an attempt that never came to its end. */
export interface Item {
  role: TranscriptRole;
  turn_id: string;
  at: number;
  text?: string;
  recovered?: boolean;
  kind?: string | null;
  call_id?: string | null;
  name?: string | null;
  args?: unknown;
  result?: string | null;
  outcome?: string | null;
}

/** What became of one due instant; derived from its turn, so it can never disagree with it. */
export type JobOutcome = "due" | "failed" | "missed" | "ran";

/** A scheduled prompt, when it is due next, and what became of the last times, the newest first. */
export interface JobView {
  name: string;
  schedule: string;
  prompt: string;
  deliver: string | null;
  paused: boolean;
  created_at: number;
  next_at: number | null;
  slots?: Fired[];
}

/** What happened in some turns of a conversation, before it is folded; `used` is what all turns used. Following the session after `seq` gives exactly what was not there yet when it was read. */
export interface JournalPage {
  session: SessionView;
  entries: Stretch[];
  seq: number;
  used: Usage;
  next_cursor?: string | null;
}

/** A file that is sent with a message. Its content is kept until the delivery is at rest. */
export interface KeptFile {
  id: string;
  name: string;
  media_type: string;
  bytes: number;
}

/** A key to be made. `rate_limit` is in requests per minute; 0 is no limit. */
export interface KeyPlan {
  name?: string;
  scopes?: string[];
  owner?: string;
  rate_limit?: number;
}

/** A key as it is shown: only what it begins with, never the whole key. */
export interface KeyView {
  id: string;
  name: string;
  owner: string;
  scopes: string[];
  prefix: string;
  rate_limit: number;
  created_at: number;
  revoked_at: number | null;
}

export type Level = "fail" | "ok" | "warn";

/** Who the caller is to the gateway, and how it was identified. */
export interface Me {
  owner: string;
  scopes: string[];
  how: string;
}

/** A person has many facts, and at most one profile: a few sentences that say who they are. */
export type MemoryKind = "fact" | "profile";

/** Where something that is remembered was said: in the turn `ordinal` of a conversation. */
export interface MemoryOrigin {
  session_id: string;
  key: string;
  title: string | null;
  ordinal: number;
  at: number;
}

/** The provider that the turns which complete now are owed to, and how it is. */
export interface MemoryProviderView {
  owner: string;
  healthy: boolean;
  detail: string;
}

/** The state of memory. Of the sessions that owe, the first are shown, those that have owed for longest first. Without a `provider`, either memory is off or no gateway runs. In the second case, what is parked counts as owed. `everyone` is the debt of all owners together, which only the operator is shown. */
export interface MemoryStatus {
  provider: MemoryProviderView | null;
  counts: Counts;
  everyone?: Debt | null;
  owing?: Owing[];
  owing_sessions?: number;
}

/** Something that is remembered. `origin` is missing where a person added it, or where its turn was deleted. */
export interface MemoryView {
  id: string;
  owner: string;
  text: string;
  created_at: number;
  updated_at: number;
  turn_id?: string | null;
  kind?: MemoryKind;
  segment_id?: string | null;
  origin?: MemoryOrigin | null;
}

/** What a client sends to a session. `busy` is what it wants if the session is at another message. */
export interface Message {
  text: string;
  busy?: Busy | null;
  images?: Image[];
}

/** A model to be tried or chosen: `name` is provider:model, or the model alone beside a `provider`. Without a key, the one that is stored for the same provider at the same address is used. `api_key_env` names a variable of the gateway instead. */
export interface ModelPlan {
  provider?: string;
  name?: string;
  base_url?: string;
  api_key?: string | null;
  api_key_env?: string;
}

/** The models of a provider, or the `problem` with listing them. */
export interface ModelsView {
  models: string[];
  problem?: string | null;
  hint?: string | null;
}

/** A key at the one time when it is shown. After the `first` key, this machine needs one too. */
export interface NewKey {
  key: string;
  first: boolean;
  made: KeyView;
}

/** A webhook route and its address. Its secret is shown only when it is new. */
export interface NewRoute {
  route: RouteView;
  url: string;
  secret?: string;
}

/** Everything that is not settled yet: answers, messages to be sent, and the unpaid segments of memory. */
export interface Obligations {
  turns?: number;
  retrying?: number;
  deliveries?: number;
  segments?: number;
}

/** A session to be opened. Naming the previous one tells its memory that it is over. */
export interface Opening {
  key?: string | null;
  channel?: string;
  title?: string | null;
  previous_session_id?: string | null;
}

/** A stretch of what a process has written: from byte `begin`, which is later than asked where the start is gone. `end` is where to read on. */
export interface Output {
  text: string;
  begin: number;
  end: number;
}

/** A session that owes something: the first segment that must be paid, and how many segments there are with it. */
export interface Owing {
  session_id: string;
  key: string;
  title: string | null;
  segments: number;
  next: SegmentView;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfApprovalView {
  items: ApprovalView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfChannelView {
  items: ChannelView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfDelivery {
  items: Delivery[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfGrantView {
  items: GrantView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfJobView {
  items: JobView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfKeyView {
  items: KeyView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfMemoryView {
  items: MemoryView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfPairingView {
  items: PairingView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfPersonView {
  items: PersonView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfProcessView {
  items: ProcessView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfRouteView {
  items: RouteView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfSegmentView {
  items: SegmentView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfSessionView {
  items: SessionView[];
  next_cursor?: string | null;
}

/** One page of a list; with `next_cursor` the next one can be asked for. */
export interface PageOfTurnView {
  items: TurnView[];
  next_cursor?: string | null;
}

/** A person who asks to be let in. The code is known to that person alone. */
export interface PairingView {
  id: string;
  account: string;
  user_id: string;
  user_name: string;
  asked_at: number;
  expires_at: number;
  message: string;
}

/** A session whose debt is to be paid. Without `wait`, the answer is immediate if another commit is paying it. */
export interface Payment {
  session_id?: string | null;
  wait?: boolean;
}

/** What a person may do. */
export type PeopleRole = "guest" | "operator" | "trusted";

/** A person who is let in. One without a time of approval is named by `allow` of the account. */
export interface PersonView {
  person: string;
  account: string;
  user_id: string;
  user_name: string;
  role: PeopleRole;
  owner: string;
  approved_at: number | null;
  last_seen_at: number | null;
}

/** Where in its life a gateway is. */
export type Phase = "draining" | "ready" | "starting";

/** A job to be added, or changed where there is one of that name. `deliver` is where its answers go. */
export interface Plan {
  name: string;
  schedule: string;
  prompt: string;
  deliver?: string | null;
}

/** A background command as it is shown. */
export interface ProcessView {
  id: string;
  session_id: string;
  turn_id: string;
  command: string;
  workdir: string;
  state: ProcessState;
  pid: number;
  exit_code: number | null;
  started_at: number;
  ended_at: number | null;
  notifies: boolean;
  patterns: string[];
}

/** A provider of models. `base_url` is the usual address of a local server; `key_hint` says where keys are made. */
export interface ProviderView {
  name: string;
  label: string;
  needs_key: boolean;
  needs_address: boolean;
  base_url: string;
  example: string;
  key_hint: string;
  key_variable: string;
  has_key: boolean;
}

/** How many sessions were deleted by this request; with `more`, the same request goes on where it ended. */
export interface PruneResult {
  pruned: number;
  more?: boolean;
}

/** Which ended sessions to delete. */
export interface Pruning {
  channel: string;
  older_than_days?: number;
}

/** What a provider elsewhere recalls; with a `problem` it could not be asked. */
export interface RecallResult {
  provider?: string;
  items?: Recollection[];
  problem?: string | null;
}

/** Proof that a message is durable. `duplicate` says that it had been accepted before. `superseded` are the turns that made way for it. A command is answered at once: `reply` is that answer, and there may be no turn to wait for. */
export interface Receipt {
  turn_id: string;
  session_id: string;
  state: TurnState;
  accepted_at: number;
  duplicate?: boolean;
  superseded?: string[];
  reply?: string | null;
}

/** How many events a request held. */
export interface Received {
  events: number;
}

/** Something that a provider recalls for a turn. */
export interface Recollection {
  text: string;
  id?: string | null;
  turn_id?: string | null;
}

/** What every refusal looks like. */
export interface Refusal {
  error: Error;
}

/** What a client wants to be remembered. */
export interface Remembered {
  text: string;
}

/** Something is not there any more. */
export interface Removed {
  removed?: boolean;
}

/** How far a replay has come: what this call did, and what is left. */
export interface Replayed {
  provider: string;
  replayed: number;
  failed: number;
  left: number;
  failures?: Failure[];
}

/** Segments that were paid once, to be given to one more provider, `limit` at a time; with 0 they are only counted. Those to `skip` have failed before. `person` is their owner; without it, it is the caller. */
export interface Replaying {
  provider: string;
  url?: string;
  limit?: number;
  skip?: string[];
  person?: string;
}

/** The findings of all checks. It is `ok` if none of them fails. */
export interface Report {
  ok: boolean;
  checks: Finding[];
}

/** A key that is no longer valid. After the `last` key, this machine needs none again. */
export interface RevokedKey {
  revoked: KeyView;
  last: boolean;
}

/** A person who is no longer let in. */
export interface RevokedPerson {
  revoked: string;
}

/** Another role for a person. */
export interface RoleChange {
  role: PeopleRole;
}

/** A webhook route to be added, or changed where one of that name was added before. Without a `secret` a new route gets a random one, and a changed route keeps its own. */
export interface RoutePlan {
  name: string;
  secret?: string;
  prompt?: string;
  deliver?: string;
  deliver_only?: boolean;
  events?: string[];
  filters?: unknown;
  enabled?: boolean;
  rate_limit?: number;
  body_limit?: number;
  scheme?: "any" | "github" | "gitlab" | "hmac" | "slack" | "standard" | "stripe";
  insecure_no_auth?: boolean;
}

/** Where a webhook route stands: in the configuration, or in the store. */
export type RouteSource = "added" | "configuration";

/** A webhook route as it is shown: never with its secret. Only one that was added can be removed. */
export interface RouteView {
  name: string;
  path: string;
  source: RouteSource;
  signed: boolean;
  prompt: string;
  deliver: string;
  deliver_only: boolean;
  events: string[];
  filters: unknown;
  enabled: boolean;
  rate_limit: number;
  body_limit: number;
  scheme: string;
  created_at?: number | null;
}

export type Scheme = "github" | "gitlab" | "hmac" | "slack" | "standard" | "stripe";

/** What a search found. While `indexing`, something older may be missing. */
export interface Search {
  items: HitView[];
  indexing: boolean;
}

/** The receipt of a segment: its turns, the provider that it is owed to, and what has become of it. A `parked` debt is owed to a provider that this gateway cannot reach. It waits until a person waives it. */
export interface SegmentView {
  id: string;
  session_id: string;
  owner: string;
  state: SegmentState;
  parked: boolean;
  generations: [number, number];
  turns: string[];
  attempt: number;
  error: string | null;
  receipt: string | null;
  created_at: number;
  next_try_at: number | null;
  settled_at: number | null;
}

/** A session as it is shown. `seq` is the cursor of its last entry. `model` is the one that answered last, or the one that was chosen since, as `chosen_model` says; null where none was called or chosen yet. `label` is what people know it by: its title, or how its first message begins. `activity` is what its turn is doing that is not settled yet. */
export interface SessionView {
  id: string;
  key: string;
  channel: string;
  source: SourceView;
  model: string | null;
  chosen_model: string | null;
  state: SessionState;
  title: string | null;
  created_at: number;
  updated_at: number;
  ended_at: number | null;
  end_reason: string | null;
  auto_reset_reason: string | null;
  resume_pending: boolean;
  resume_reason: string | null;
  parent_id: string | null;
  one_shot: boolean;
  pinned: boolean;
  archived: boolean;
  turns: number;
  seq: number;
  label: string;
  activity: Activity | null;
}

/** The kind of value that a setting has. */
export type SettingForm = "any" | "choice" | "flag" | "list" | "number" | "table" | "text" | "time";

/** One setting, by its path in the file. A secret is never shown, only whether there is one. `source` is where its value comes from; what comes from the environment or the command line the file cannot change. */
export interface SettingView {
  key: string;
  value: unknown;
  default: unknown;
  source: "arguments" | "default" | "environment" | "file";
  secret: boolean;
  doc: string;
  form: SettingForm;
  choices?: string[];
  editable?: boolean;
}

/** New values by key; null means the default. With `base`, they are set only if the file still has that revision. */
export interface SettingsChange {
  changes: Record<string, unknown>;
  base?: string | null;
}

/** All settings as the next start will read them. `revision` and `problem` are those of the file. */
export interface SettingsView {
  file: string;
  revision: string;
  items: SettingView[];
  restart_needed: boolean;
  problem?: string | null;
}

/** How a request was settled. `new` is false where it had been settled the same way before. */
export interface SettledPairing {
  id: string;
  person: string;
  choice: Choice;
  new: boolean;
}

/** Whether a model is still to be chosen, the one that is chosen, and the providers to choose from. */
export interface SetupView {
  needed: boolean;
  model: ChosenModel;
  providers: ProviderView[];
}

/** An address that signs one browser in, once. */
export interface SignInLink {
  url: string;
  expires_at: number;
}

/** A delivery as its sender would send it. */
export interface Signed {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** Whether a browser is signed in now. Each request of its page names `login` and is signed with `secret`. Both are sent once. The first request signs `nonce`; a 401 with the header X-Holdfast-Nonce has the next nonce. */
export interface SignedIn {
  signed_in: boolean;
  login?: string | null;
  secret?: string | null;
  nonce?: string | null;
}

/** A delivery to be signed as its sender would. Without a `scheme`, that of the route is used. */
export interface Signing {
  body: string;
  scheme?: Scheme | null;
  delivery_id?: string;
}

/** What answers to `url:` targets are signed with. */
export interface SigningSecret {
  secret: string;
}

/** Where the messages of a session come from. What its channel does not say is null. */
export interface SourceView {
  chat_id: string | null;
  chat_name: string | null;
  chat_type: string | null;
  thread_id: string | null;
  user_id: string | null;
  user_name: string | null;
}

/** A gateway at a glance. `accepted` is `settled` and `in_flight` together, always. `memory` says what the segments in `obligations` wait for, whosever they are. `clocks_off` has every node, this one or another, whose clock is off. While the store does not answer there are no counts, and `problem` says so. */
export interface Status {
  pid: number;
  node: string;
  version: string;
  home: string;
  url: string;
  store: string;
  state: Phase;
  ready: boolean;
  started_at: number;
  uptime_s: number;
  running: number;
  agent?: AgentView;
  questions?: number;
  pairings?: number;
  processes?: number;
  accepted?: number;
  settled?: number;
  in_flight?: number;
  turns?: Record<string, number>;
  obligations?: Obligations | null;
  memory?: Debt | null;
  boot?: string[];
  clocks_off?: ClockOff[];
  drain?: Drain | null;
  problem?: string | null;
  damage?: string[];
}

/** A wish to end the gateway, or to have it begin anew. `timeout` is seconds; None is what is configured. */
export interface Stop {
  restart?: boolean;
  timeout?: number | null;
}

/** What the sender of a delivery is told. `missing` are fields of the prompt that the payload has not. */
export interface Taken {
  status: string;
  delivery_id: string;
  session_id?: string | null;
  turn_id?: string | null;
  missing?: string[];
}

/** A page of a conversation as it is read, whole turns at a time. Following the session after `seq` gives exactly what was not there yet when it was read. */
export interface Transcript {
  session: SessionView;
  items: Item[];
  seq: number;
  next_cursor?: string | null;
}

/** Whose an item is. What a client says was said before its message is `PRIOR`; its kind is who said it. */
export type TranscriptRole = "assistant" | "marker" | "note" | "prior" | "question" | "reasoning" | "tool" | "user";

/** The result of one small request. */
export interface Trial {
  ok: boolean;
  problem: string | null;
  hint: string | null;
  said: string;
  took_ms: number;
}

/** The receipt of a turn: what became of a message, and when. A message that joined another turn shares what becomes of that one, which `joined_to` names. */
export interface TurnView {
  id: string;
  session_id: string;
  state: TurnState;
  cause: string | null;
  attempt: number;
  accepted_at: number;
  started_at: number | null;
  answered_at: number | null;
  delivered_at: number | null;
  error: string | null;
  joined_to?: string | null;
  retry_at?: number | null;
}

/** A file that a person has uploaded: where tools find it, its name, and its size. */
export interface Upload {
  path: string;
  name: string;
  bytes: number;
}

/** Tokens of one or many model calls. Cost is in millionths of a dollar; where no price is known it is 0. */
export interface Usage {
  model?: string;
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cost_micros?: number;
}

/** How one can sign in here; there is always the link. */
export interface Ways {
  password: boolean;
}

/** A question was answered, and the turn is queued again. */
export interface EntryApprovalAnswered {
  question_id: string;
  text: string;
}

/** The turn waits for a person to answer a question, which may be about a tool call. */
export interface EntryApprovalAsked {
  question_id: string;
  text: string;
  about: string;
  choices: string[];
  detail: Record<string, unknown>;
  expires_at: number | null;
  call_id?: string;
  name?: string;
  args?: unknown;
}

/** A summary replaces everything up to the entry `after`, whose last turn is `through`. */
export interface EntryContextCompacted {
  text: string;
  through: string;
  after: number;
}

/** The message of the turn `turn_id` became a part of this turn. */
export interface EntryMessageJoined {
  text: string;
  turn_id: string;
}

/** Holdfast said something in its own name. */
export interface EntryNote {
  text: string;
  banner?: string;
  waiting?: string;
}

/** A picture that came with a message. Clients fetch its bytes by its position in the list. */
export interface EntryPicture {
  media_type: string;
  bytes: number;
}

/** Something that a client says was said before its message. */
export interface EntryPrior {
  speaker: EntrySpeaker;
  text: string;
}

/** A piece of what the model thought before its answer. */
export interface EntryReasoning {
  text: string;
}

export type EntrySpeaker = "assistant" | "system" | "user";

/** A piece of the answer. */
export interface EntryText {
  text: string;
}

/** One call of a model, and what it cost. */
export interface EntryTokensUsed {
  model: string;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cost_micros: number;
}

/** A tool call ended. A call that never started has its `args` here; one with an unknown outcome may have no result. */
export interface EntryToolFinished {
  call_id: string;
  name: string;
  outcome: string;
  result?: string | null;
  args?: unknown;
}

/** A tool call began. */
export interface EntryToolStarted {
  call_id: string;
  name: string;
  args: unknown;
}

/** A message was accepted. It is the first entry of its turn. */
export interface EntryTurnAccepted {
  text: string;
  key?: string;
  images?: EntryPicture[];
  prior?: EntryPrior[];
  sent_at?: number;
  request?: Record<string, unknown>;
}

/** The turn was cancelled. */
export interface EntryTurnCancelled {
  text?: string;
  error?: string;
  cause?: string;
}

/** The turn was answered with `text`, or its message joined another turn. */
export interface EntryTurnCompleted {
  text?: string;
  error?: string;
  cause?: string;
  joined?: string;
}

/** The model failed with `error`, and the turn is tried again at `retry_at`. */
export interface EntryTurnDeferred {
  error: string;
  retry_at: number;
}

/** The turn failed. */
export interface EntryTurnFailed {
  text?: string;
  error?: string;
  cause?: string;
}

/** An attempt lost its worker. */
export interface EntryTurnInterrupted {
  text?: string;
  error?: string;
  cause?: string;
  continues?: boolean;
  recovery?: string;
}

/** The search for output of a lost attempt ended, after it found `found` entries. */
export interface EntryTurnRecovered {
  attempt: number;
  found: number;
}

/** The message was changed by its sender before it was read: it says `text` now. */
export interface EntryTurnRevised {
  text: string;
}

/** A worker began an attempt. */
export interface EntryTurnStarted {
  attempt: number;
}

/** The turn is left out of the conversation from now on. */
export type EntryTurnUndone = Record<string, unknown>;

/** What an entry says, by its kind. */
export interface Payloads {
  text: EntryText;
  reasoning: EntryReasoning;
  "tool.started": EntryToolStarted;
  "tool.finished": EntryToolFinished;
  usage: EntryTokensUsed;
  "turn.accepted": EntryTurnAccepted;
  "turn.started": EntryTurnStarted;
  "turn.completed": EntryTurnCompleted;
  "turn.failed": EntryTurnFailed;
  "turn.cancelled": EntryTurnCancelled;
  "turn.interrupted": EntryTurnInterrupted;
  "turn.deferred": EntryTurnDeferred;
  "turn.recovered": EntryTurnRecovered;
  "turn.undone": EntryTurnUndone;
  "turn.revised": EntryTurnRevised;
  "message.joined": EntryMessageJoined;
  note: EntryNote;
  "approval.asked": EntryApprovalAsked;
  "approval.answered": EntryApprovalAnswered;
  "context.compacted": EntryContextCompacted;
}

/** One durable entry of a session's journal. */
export type Entry = { [K in EntryKind]: EntryOf<K> }[EntryKind];

export interface EntryOf<K extends EntryKind> {
  session_id: string;
  seq: number;
  turn_id: string;
  attempt: number;
  nth: number | null;
  kind: K;
  at: number;
  data: Payloads[K];
}

/** One entry, or a run of words that stands for several: those from `since` to `seq`. */
export interface Stretch {
  session_id: string;
  seq: number;
  turn_id: string;
  attempt: number;
  nth: number | null;
  kind: EntryKind;
  at: number;
  data: Record<string, unknown>;
  since: number;
}
