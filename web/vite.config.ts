import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./", // the page works at whatever path a proxy gives it
  plugins: [vue()],
  build: {
    outDir: "../src/unhans/static",
    emptyOutDir: true,
    target: ["chrome123", "edge123", "firefox121", "safari17.5"], // light-dark(), :has()
    assetsInlineLimit: 0, // the content security policy allows no data: addresses
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700, // the charts, fetched only where one is drawn
  },
  server: {
    proxy: { "/api": { target: process.env.UNHANS_SERVER ?? "http://127.0.0.1:8765", changeOrigin: true } },
  },
  test: { environment: "happy-dom", include: ["tests/**/*.test.ts"], testTimeout: 60_000 }, // never a matter of speed
});
