/** Whether the tour is open: on the first visit, and whenever somebody asks for it. */
import { computed, ref } from "vue";

import { me, preference, setPreference } from "./state";

const asked = ref(false);

export const tourOpen = computed(() => me.value !== null && (asked.value || !preference("tour_seen", false)));

export function startTour(): void {
  asked.value = true;
}

export function endTour(): void {
  asked.value = false;
  if (!preference("tour_seen", false)) void setPreference("tour_seen", true);
}
