/** What all views share: who I am, the project, the jobs, and what the shell says. */
import { computed, reactive, ref, shallowRef, watch } from "vue";

import { api, ApiError } from "./api";
import type { Job, Me, ProjectFacts, Role } from "./types";

// -- me

export const me = shallowRef<Me | null>(null);
export const signedOutBecause = ref(""); // why somebody has to sign in, as the server put it

const rank: Record<Role, number> = { annotator: 0, manager: 1, admin: 2 };
export const may = (role: Role): boolean => me.value !== null && rank[me.value.role] >= rank[role];

export async function loadMe(): Promise<Me | null> {
  try {
    me.value = await api.me();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    me.value = null;
  }
  return me.value;
}

// -- preferences: one object at the server, changed key by key; the last change wins

export type Theme = "system" | "light" | "dark";

export function preference<T>(name: string, otherwise: T): T {
  const preferences = me.value?.preferences ?? {};
  return Object.hasOwn(preferences, name) ? (preferences[name] as T) : otherwise;
}

/** Kept at once here, and at the server as soon as it hears of it. */
export async function setPreference(name: string, value: unknown): Promise<void> {
  if (!me.value) return;
  const preferences = { ...me.value.preferences, [name]: value };
  me.value = { ...me.value, preferences };
  try {
    await api.setPreferences(preferences);
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error), "bad");
  }
}

const asTheme = (value: unknown): Theme => (value === "light" || value === "dark" ? value : "system");
const THEME = "unhans.theme"; // also kept in the browser, so that the page does not flash in the wrong one
export const theme = ref<Theme>(asTheme(localStorage.getItem(THEME)));
const systemDark = window.matchMedia?.("(prefers-color-scheme: dark)");
const prefersDark = ref(systemDark?.matches ?? false);
systemDark?.addEventListener("change", (event) => (prefersDark.value = event.matches));
export const dark = computed(() => (theme.value === "system" ? prefersDark.value : theme.value === "dark"));

watch(theme, (chosen) => {
  document.documentElement.dataset.theme = chosen;
  localStorage.setItem(THEME, chosen);
}, { immediate: true });
watch(me, (person, before) => {
  if (person && person.name !== before?.name) theme.value = asTheme(preference("theme", theme.value));
});

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  void setPreference("theme", chosen);
}

// -- the project in the address

export const project = shallowRef<ProjectFacts | null>(null);
export const projectProblem = shallowRef<ApiError | null>(null);

export async function loadProject(name: string): Promise<ProjectFacts | null> {
  try {
    project.value = await api.project(name);
    projectProblem.value = null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (project.value?.name !== name) project.value = null;
    projectProblem.value = error;
  }
  return project.value;
}

// -- jobs, as they happen

export const jobs = shallowRef<Job[]>([]); // newest first
const jobListeners = new Set<(job: Job) => void>();
let events: EventSource | null = null;

export const openJobs = computed(() => jobs.value.filter((job) => job.state === "running" || job.state === "queued"));

function takeJobs(changed: Job[]): void {
  const known = new Map(jobs.value.map((job) => [job.id, job]));
  const news = changed.filter((job) => JSON.stringify(known.get(job.id)) !== JSON.stringify(job));
  for (const job of news) known.set(job.id, job);
  jobs.value = [...known.values()].sort((a, b) => (a.created < b.created ? 1 : -1));
  for (const job of news) for (const listener of [...jobListeners]) listener(job);
}

/** Tell the state about a job that an answer of the server brought. */
export const takeJob = (job: Job): void => takeJobs([job]);

/** Hear of each change of a job; call the answer to stop. */
export function onJob(listener: (job: Job) => void): () => void {
  jobListeners.add(listener);
  return () => jobListeners.delete(listener);
}

/** Resolves when the job has ended, however it ended. */
export function jobEnd(id: string): Promise<Job> {
  const ended = (job: Job) => job.id === id && !["queued", "running"].includes(job.state);
  const known = jobs.value.find(ended);
  if (known) return Promise.resolve(known);
  return new Promise((resolve) => {
    const stop = onJob((job) => {
      if (!ended(job)) return;
      stop();
      resolve(job);
    });
  });
}

const AGAIN = 10_000;

export async function watchJobs(): Promise<void> {
  events?.close();
  const line = (events = api.events());
  let times = 0;
  line.addEventListener("jobs", (event) => takeJobs(JSON.parse((event as MessageEvent<string>).data) as Job[]));
  line.addEventListener("open", () => void (times++ && back()));
  line.addEventListener("error", () => {
    // the browser tries again by itself, unless the server said no
    if (line.readyState === EventSource.CLOSED) window.setTimeout(() => me.value && events === line && void watchJobs(), AGAIN);
  });
  await refreshJobs();
}

/** The line was down: the server may be another one, and jobs may have gone on. */
async function back(): Promise<void> {
  await refreshJobs();
  try {
    const now = await api.me();
    newVersion.value = me.value !== null && now.version !== me.value.version;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // whoever asks for something next will hear it
  }
}

async function refreshJobs(): Promise<void> {
  try {
    takeJobs(await api.jobs());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // the line is down again, and this is called when it is back
  }
}

export function stopWatching(): void {
  events?.close();
  events = null;
  jobs.value = [];
}

// -- what the shell says

export interface Note {
  id: number;
  text: string;
  kind: "ok" | "bad" | "plain";
}

export const notes = reactive<Note[]>([]);
let lastNote = 0;

/** Say a sentence to eyes and screen readers; errors stay until dismissed. */
export function tell(text: string, kind: Note["kind"] = "plain"): void {
  if (notes.some((note) => note.text === text)) return;
  const id = ++lastNote;
  notes.push({ id, text, kind });
  if (notes.length > 4) notes.shift();
  if (kind !== "bad") window.setTimeout(() => hush(id), 6000);
}

export function hush(id: number): void {
  const at = notes.findIndex((note) => note.id === id);
  if (at >= 0) notes.splice(at, 1);
}

/** Read out only: what the page already shows. */
export const spoken = ref("");

export const newVersion = ref(false); // the server is another version than this page
