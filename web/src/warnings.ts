/** Why some explanation methods are not to be trusted with the model in use, as the lab or an audit found. */
import { computed, shallowRef, watch, type ComputedRef } from "vue";

import { api, ApiError } from "./api";
import type { Method } from "./types";

const LONGEST = 60; // letters in a list to choose from; in full it stands beside

/** Behind the name of a method where it can be chosen. */
export const warningMark = ({ usable, warning }: Pick<Method, "usable" | "warning">): string => (!usable ? " (not with this model)" : warning ? ` ⚠ ${warning.length > LONGEST ? `${warning.slice(0, LONGEST - 1)}…` : warning}` : "");

/** Warnings by method. Without a connection nobody is warned: whoever asks for the methods to use one hears of that. */
export function useWarnings(project: () => string): ComputedRef<ReadonlyMap<string, string>> {
  const methods = shallowRef<Method[]>([]);
  watch(project, async (name) => {
    try {
      methods.value = await api.methods(name);
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem;
    }
  }, { immediate: true });
  return computed(() => new Map(methods.value.flatMap((one) => (one.warning ? [[one.name, one.warning] as const] : []))));
}
