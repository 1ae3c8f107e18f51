/** How long somebody looked: time stands still while the page is hidden, and after a minute without a sign of life. */
import { onBeforeUnmount, onMounted } from "vue";

const IDLE = 60_000;

export function makeTimer(now: () => number) {
  let gathered = 0;
  let last = now();
  let running = true;
  let lapped = 0;

  function gather(): void {
    const time = now();
    if (running) gathered += Math.min(Math.max(0, time - last), IDLE);
    last = time;
  }

  return {
    /** A new example is shown. */
    start(): void {
      gathered = 0;
      lapped = 0;
      last = now();
    },
    /** A key, a click, a movement. */
    touch: gather,
    visible(shown: boolean): void {
      gather();
      running = shown;
    },
    /** Seconds since the example was shown. */
    total(): number {
      gather();
      return gathered / 1000;
    },
    /** Seconds since the last lap. */
    lap(): number {
      gather();
      const seconds = (gathered - lapped) / 1000;
      lapped = gathered;
      return seconds;
    },
  };
}

/** The timer of a screen, which knows that somebody is there by what they do with the page. */
export function useTimer() {
  const timer = makeTimer(() => performance.now());
  const signs = ["pointermove", "keydown", "scroll"] as const;
  const seen = (): void => timer.visible(document.visibilityState === "visible");
  onMounted(() => {
    for (const sign of signs) window.addEventListener(sign, timer.touch, { passive: true });
    document.addEventListener("visibilitychange", seen);
  });
  onBeforeUnmount(() => {
    for (const sign of signs) window.removeEventListener(sign, timer.touch);
    document.removeEventListener("visibilitychange", seen);
  });
  return timer;
}
