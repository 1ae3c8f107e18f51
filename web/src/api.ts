/** Every call to the server, typed. The only file that knows addresses; they are relative, so any proxy path works. */
import type {
  AnchorPage, AnchorView, AuditChange, AuditOffer, AuditRow, AuditView, CopyChange, CopyPage, CopyView, DataProblems, DoubtPage, ExamplePage,
  ExampleView, ExchangeFormat, Export, Feedback, Filter, FindingPage, FixOffer, FlipChart, FlipDesk, FlipOffer, FlipPage, FlipView, History, Home,
  Imported, Invite, Job, LabOffer, LabView, LossCurve, Me, Method, NeighbourOffer, NewAudit, NewComparison, NewCopies, NewDoubts, NewExport,
  NewFeedback, NewFix, NewFlips, NewInvite, NewJob, NewLab, NewTrace, NextPlace, Person, PersonChange, ProjectFacts, ProjectPlan, ProjectSettings,
  Publish, Report, Retraction, Revisions, RiskView, Saved, Sort, Team, Upload, VerdictSummary, WordOrder, WordPage, WordView,
} from "./types";

type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

/** The server said no. `status` 0: it could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string = "",
    readonly current: Feedback | null = null, // with a conflict: what is stored
  ) {
    super(message);
    this.name = "ApiError";
  }

  /** Whether the same request may succeed later: no connection, a restart, no disk space. */
  get passing(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

let signedOut = (_error: ApiError): void => {};

/** What the shell does when a session has ended. */
export function onSignedOut(heard: (error: ApiError) => void): void {
  signedOut = heard;
}

/** The full address of a path below `api/`. */
export function addressOf(path: string, query: Query = {}): string {
  const url = new URL(`api/${path}`, document.baseURI.split("#")[0]);
  for (const [name, value] of Object.entries(query))
    if (Array.isArray(value)) for (const one of value) url.searchParams.append(name, String(one));
    else if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  return url.toString();
}

interface Request {
  method?: string;
  query?: Query;
  json?: unknown;
  raw?: Blob;
  signal?: AbortSignal;
  quiet?: boolean; // a 401 is an answer here, not the end of a session
}

async function ask<T>(path: string, { method = "GET", query, json, raw, signal, quiet }: Request = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (json !== undefined) headers["Content-Type"] = "application/json";
  if (raw) headers["Content-Type"] = "application/octet-stream";
  let response: Response;
  try {
    response = await fetch(addressOf(path, query), {
      method, headers, signal: signal ?? null, credentials: "same-origin",
      body: raw ?? (json === undefined ? null : JSON.stringify(json)),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "offline", "No connection to the server. What is saved stays saved; this will be tried again.");
  }
  if (response.status === 204) return undefined as T;
  if (response.ok) return (await response.json()) as T;
  const failure = await failureOf(response);
  if (failure.status === 401 && !quiet) signedOut(failure);
  throw failure;
}

async function failureOf(response: Response): Promise<ApiError> {
  const answer = await response.json().catch(() => null); // a proxy in between may answer in HTML
  const problem = answer?.error;
  if (typeof problem?.message === "string")
    return new ApiError(response.status, problem.code, problem.message, problem.request_id, answer.current ?? null);
  return new ApiError(response.status, "unknown", `The server answered ${response.status}. What is saved stays saved; try again.`);
}

const inProject = (project: string, rest = ""): string => `projects/${encodeURIComponent(project)}${rest}`;

const auditPath = (id: string): string => `/audits/${encodeURIComponent(id)}`;

const reportPath = (before: string, after: string): string => `/reports/${encodeURIComponent(before)}/${encodeURIComponent(after)}`;

export const api = {
  me: () => ask<Me>("me", { quiet: true }),
  login: (name: string, password: string) => ask<Me>("login", { method: "POST", json: { name, password }, quiet: true }),
  join: (invite: string, name: string, password: string) =>
    ask<Me>("join", { method: "POST", json: { invite, name, password }, quiet: true }),
  logout: () => ask<void>("logout", { method: "POST" }),
  setPreferences: (preferences: Record<string, unknown>) => ask<Me>("me/preferences", { method: "PUT", json: preferences }),
  setPassword: (old: string, fresh: string) => ask<Me>("me/password", { method: "POST", json: { old, new: fresh } }),

  people: () => ask<Person[]>("people"),
  changePerson: (name: string, change: PersonChange) =>
    ask<Person>(`people/${encodeURIComponent(name)}`, { method: "PATCH", json: change }),
  removePerson: (name: string) => ask<void>(`people/${encodeURIComponent(name)}`, { method: "DELETE" }),
  invites: () => ask<Invite[]>("invites"),
  invite: (whom: NewInvite) => ask<Invite>("invites", { method: "POST", json: whom }),
  removeInvite: (id: string) => ask<void>(`invites/${encodeURIComponent(id)}`, { method: "DELETE" }),

  home: () => ask<Home>("home"),
  methods: (project: string) => ask<Method[]>(inProject(project, "/methods")),
  check: (plan: ProjectPlan) => ask<Job>("checks", { method: "POST", json: plan }),
  create: (plan: ProjectPlan) => ask<Job>("projects", { method: "POST", json: plan }),

  project: (project: string) => ask<ProjectFacts>(inProject(project)),
  setProject: (project: string, settings: ProjectSettings) =>
    ask<ProjectFacts>(inProject(project), { method: "PATCH", json: settings }),

  examples: (
    project: string,
    asked: { filter?: Filter; sort?: Sort; cursor?: string | null; limit?: number },
    signal?: AbortSignal,
  ) =>
    ask<ExamplePage>(inProject(project, "/examples"), {
      query: { ...asked.filter, sort: asked.sort, cursor: asked.cursor, limit: asked.limit },
      signal,
    }),
  example: (
    project: string,
    place: number,
    asked: { filter?: Filter; sort?: Sort; explained?: string | null },
    signal?: AbortSignal,
  ) =>
    ask<ExampleView>(inProject(project, `/examples/${place}`), {
      query: { ...asked.filter, sort: asked.sort, explained: asked.explained },
      signal,
    }),
  next: (project: string, filter: Filter, after: number | null) =>
    ask<NextPlace>(inProject(project, "/next"), { method: "POST", json: { filter, after } }),

  say: (project: string, feedback: NewFeedback) =>
    ask<Saved>(inProject(project, "/feedback"), { method: "POST", json: feedback }),
  undo: (project: string, retraction: Retraction) =>
    ask<Saved>(inProject(project, "/undo"), { method: "POST", json: retraction }),
  history: (project: string, asked: { cursor?: string | null; author?: string | null } = {}) =>
    ask<History>(inProject(project, "/feedback"), { query: asked }),
  exportAddress: (project: string, format: ExchangeFormat) => addressOf(inProject(project, "/feedback/export"), { format }),
  importFeedback: (project: string, format: ExchangeFormat, file: Blob) =>
    ask<Imported>(inProject(project, "/feedback/import"), { method: "POST", query: { format }, raw: file }),

  words: (
    project: string,
    asked: { label?: string; explained?: string | null; search?: string; order?: WordOrder; cursor?: string | null; limit?: number },
    signal?: AbortSignal,
  ) => ask<WordPage>(inProject(project, "/words"), { query: asked, signal }),
  word: (project: string, asked: { word: string; label: string; explained?: string | null }, signal?: AbortSignal) =>
    ask<WordView>(inProject(project, "/word"), { query: asked, signal }),

  team: (project: string) => ask<Team>(inProject(project, "/team")),
  problems: (project: string) => ask<DataProblems>(inProject(project, "/problems")),
  setAsideAddress: (project: string) => addressOf(inProject(project, "/problems/set-aside.csv")),

  fixes: (project: string, people: readonly string[] | null, signal?: AbortSignal) =>
    ask<FixOffer>(inProject(project, "/fixes"), { query: people === null ? {} : { people }, signal }),
  fix: (project: string, fix: NewFix) => ask<Job>(inProject(project, "/fixes"), { method: "POST", json: fix }),
  curve: (project: string, job: string, signal?: AbortSignal) =>
    ask<LossCurve>(inProject(project, `/fixes/${encodeURIComponent(job)}/curve`), { signal }),

  flipMethods: (project: string) => ask<FlipOffer>(inProject(project, "/flips/methods")),
  flipDesk: (
    project: string,
    place: number,
    asked: { filter?: Filter; sort?: Sort; revision?: string | null },
    signal?: AbortSignal,
  ) =>
    ask<FlipDesk>(inProject(project, `/examples/${place}/flips`), {
      query: { ...asked.filter, sort: asked.sort, revision: asked.revision },
      signal,
    }),
  flips: (project: string, asked: { place?: number; waiting?: boolean; cursor?: string | null; limit?: number }, signal?: AbortSignal) =>
    ask<FlipPage>(inProject(project, "/flips"), { query: asked, signal }),
  flip: (project: string, id: string) => ask<FlipView>(inProject(project, `/flips/${encodeURIComponent(id)}`)),
  findFlips: (project: string, search: Partial<NewFlips>) => ask<Job>(inProject(project, "/flips"), { method: "POST", json: search }),
  flipChart: (project: string, revision: string | null) => ask<FlipChart>(inProject(project, "/flips/chart"), { query: { revision } }),
  flipsAddress: (project: string, revision: string | null) => addressOf(inProject(project, "/flips/export"), { revision }),
  risk: (project: string, asked: { revision?: string | null; width?: number }, signal?: AbortSignal) =>
    ask<RiskView>(inProject(project, "/risk"), { query: asked, signal }),

  neighbourMethods: (project: string) => ask<NeighbourOffer>(inProject(project, "/neighbours/methods")),
  anchors: (project: string, asked: { revision?: string | null; waiting?: boolean; cursor?: string | null; limit?: number }, signal?: AbortSignal) =>
    ask<AnchorPage>(inProject(project, "/anchors"), { query: asked, signal }),
  anchor: (project: string, place: number, revision: string | null, signal?: AbortSignal) =>
    ask<AnchorView>(inProject(project, `/anchors/${place}`), { query: { revision }, signal }),
  trace: (project: string, what: Partial<NewTrace>) => ask<Job>(inProject(project, "/anchors"), { method: "POST", json: what }),
  copies: (project: string, asked: { place?: number; cursor?: string | null; limit?: number }, signal?: AbortSignal) =>
    ask<CopyPage>(inProject(project, "/copies"), { query: asked, signal }),
  makeCopies: (project: string, what: Partial<NewCopies>) => ask<Job>(inProject(project, "/copies"), { method: "POST", json: what }),
  changeCopy: (project: string, id: string, change: CopyChange) =>
    ask<CopyView>(inProject(project, `/copies/${encodeURIComponent(id)}`), { method: "PATCH", json: change }),
  deleteCopy: (project: string, id: string) => ask<void>(inProject(project, `/copies/${encodeURIComponent(id)}`), { method: "DELETE" }),
  doubts: (
    project: string,
    asked: { revision?: string | null; label?: string | null; waiting?: boolean; cursor?: string | null; limit?: number },
    signal?: AbortSignal,
  ) => ask<DoubtPage>(inProject(project, "/doubts"), { query: asked, signal }),
  doubt: (project: string, what: Partial<NewDoubts>) => ask<Job>(inProject(project, "/doubts"), { method: "POST", json: what }),

  auditOffer: (project: string) => ask<AuditOffer>(inProject(project, "/audits/checks")),
  audits: (project: string, signal?: AbortSignal) => ask<AuditRow[]>(inProject(project, "/audits"), { signal }),
  audit: (project: string, id: string, signal?: AbortSignal) => ask<AuditView>(inProject(project, auditPath(id)), { signal }),
  findings: (
    project: string,
    id: string,
    asked: { severity?: string | null; check?: string | null; cursor?: string | null; limit?: number },
    signal?: AbortSignal,
  ) => ask<FindingPage>(inProject(project, `${auditPath(id)}/findings`), { query: asked, signal }),
  auditChange: (project: string, before: string, after: string) =>
    ask<AuditChange>(inProject(project, `${auditPath(after)}/changes`), { query: { since: before } }),
  auditPage: (project: string, id: string) => addressOf(inProject(project, `${auditPath(id)}/page.html`)),
  auditFile: (project: string, id: string) => addressOf(inProject(project, `${auditPath(id)}/audit.json`)),
  startAudit: (project: string, what: Partial<NewAudit>) => ask<Job>(inProject(project, "/audits"), { method: "POST", json: what }),
  labOffer: (project: string) => ask<LabOffer>(inProject(project, "/lab/offer")),
  lab: (project: string, revision: string | null, signal?: AbortSignal) => ask<LabView | null>(inProject(project, "/lab"), { query: { revision }, signal }),
  startLab: (project: string, what: Partial<NewLab>) => ask<Job>(inProject(project, "/lab"), { method: "POST", json: what }),
  verdicts: (project: string) => ask<VerdictSummary>(inProject(project, "/verdicts")),

  revisions: (project: string) => ask<Revisions>(inProject(project, "/revisions")),
  publish: (project: string, revision: string, publish: Publish) =>
    ask<Revisions>(inProject(project, `/revisions/${encodeURIComponent(revision)}/publish`), { method: "POST", json: publish }),
  rollBack: (project: string, expects: string) =>
    ask<Revisions>(inProject(project, "/rollback"), { method: "POST", json: { expects } }),
  report: (project: string, before: string, after: string) => ask<Report>(inProject(project, reportPath(before, after))),
  reportAddress: (project: string, before: string, after: string) => addressOf(inProject(project, `${reportPath(before, after)}/page.html`)),
  compare: (project: string, pair: NewComparison) => ask<Job>(inProject(project, "/comparisons"), { method: "POST", json: pair }),

  exports: (project: string) => ask<Export[]>(inProject(project, "/exports")),
  export: (project: string, what: NewExport) => ask<Job>(inProject(project, "/exports"), { method: "POST", json: what }),
  exportedAddress: (project: string, name: string) => addressOf(inProject(project, `/exports/${encodeURIComponent(name)}.zip`)),

  startJob: (project: string, job: NewJob) => ask<Job>(inProject(project, "/jobs"), { method: "POST", json: job }),
  jobs: (project?: string) => ask<Job[]>("jobs", { query: { project } }),
  job: (id: string) => ask<Job>(`jobs/${encodeURIComponent(id)}`),
  cancelJob: (id: string) => ask<Job>(`jobs/${encodeURIComponent(id)}/cancel`, { method: "POST" }),
  retryJob: (id: string) => ask<Job>(`jobs/${encodeURIComponent(id)}/retry`, { method: "POST" }),
  events: () => new EventSource(addressOf("events")),
};

/** Send a file and hear how far it is; `fetch` cannot tell. */
export function upload(
  file: File,
  kind: "model" | "data",
  progress: (share: number) => void,
  signal?: AbortSignal,
): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", addressOf("uploads", { kind, name: file.name }));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    request.onload = async () => {
      const response = new Response(request.responseText, { status: request.status });
      if (response.ok) resolve((await response.json()) as Upload);
      else reject(await failureOf(response));
    };
    request.onerror = () => reject(new ApiError(0, "offline", "The connection broke while sending. Nothing was stored; send the file again."));
    request.onabort = () => reject(new DOMException("Stopped", "AbortError"));
    signal?.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}
