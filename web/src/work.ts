/** What a screen has the server do: one request at a time, why it was refused, and a job that did not end well. */
import { ref, shallowRef } from "vue";

import { jobs, may, me, takeJob } from "./state";
import type { Job } from "./types";

export function useWork() {
  const busy = ref(false);
  const refused = shallowRef<unknown>(null);
  const ended = shallowRef<Job | null>(null); // one that did not end well

  async function act(work: () => Promise<Job>): Promise<void> {
    busy.value = true;
    refused.value = null;
    ended.value = null;
    try {
      takeJob(await work());
    } catch (problem) {
      refused.value = problem;
    } finally {
      busy.value = false;
    }
  }

  /** A job is no longer open: whether it ended well. */
  function endedWell(id: string): boolean {
    const job = jobs.value.find((one) => one.id === id);
    if (!job || (job.state !== "failed" && job.state !== "cancelled")) return true;
    ended.value = job;
    return false;
  }

  const mayStop = (job: Job): boolean => job.by === me.value?.name || may("manager");
  return { busy, refused, ended, act, endedWell, mayStop };
}
