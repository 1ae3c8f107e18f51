/** Addresses of the views. Behind `#`, so that the page works at any path of any proxy. */
import { createRouter, createWebHashHistory } from "vue-router";

import { onSignedOut } from "./api";
import { loadMe, loadProject, me, project, signedOutBecause, watchJobs } from "./state";

export const router = createRouter({
  history: createWebHashHistory(),
  routes: [
    { path: "/", name: "home", component: () => import("./views/Home.vue"), meta: { title: "Home" } },
    { path: "/login", name: "login", component: () => import("./views/Login.vue"), meta: { title: "Sign in", open: true } },
    { path: "/join/:secret", name: "join", component: () => import("./views/Join.vue"), props: true, meta: { title: "Join", open: true } },
    { path: "/new", name: "new", component: () => import("./views/NewProject.vue"), meta: { title: "New project" } },
    { path: "/jobs", name: "jobs", component: () => import("./views/Jobs.vue"), meta: { title: "Jobs" } },
    { path: "/settings", name: "settings", component: () => import("./views/Settings.vue"), meta: { title: "Settings and help" } },
    {
      path: "/p/:project/examples/:place(\\d+)?",
      name: "examples",
      component: () => import("./views/Examples.vue"),
      props: (route) => ({ project: route.params.project, place: route.params.place ? Number(route.params.place) : null }),
      meta: { title: "Examples" },
    },
    { path: "/p/:project/words", name: "words", component: () => import("./views/Words.vue"), props: true, meta: { title: "Words" } },
    {
      path: "/p/:project/flips/:place(\\d+)?",
      name: "flips",
      component: () => import("./views/Flips.vue"),
      props: (route) => ({ project: route.params.project, place: route.params.place ? Number(route.params.place) : null }),
      meta: { title: "Flips" },
    },
    {
      path: "/p/:project/neighbours/:place(\\d+)?",
      name: "neighbours",
      component: () => import("./views/Neighbours.vue"),
      props: (route) => ({ project: route.params.project, place: route.params.place ? Number(route.params.place) : null }),
      meta: { title: "Neighbours" },
    },
    {
      path: "/p/:project/label-errors/:place(\\d+)?",
      name: "label-errors",
      component: () => import("./views/LabelErrors.vue"),
      props: (route) => ({ project: route.params.project, place: route.params.place ? Number(route.params.place) : null }),
      meta: { title: "Label errors" },
    },
    { path: "/p/:project/bugs", name: "bugs", component: () => import("./views/Bugs.vue"), props: true, meta: { title: "Bugs" } },
    { path: "/p/:project/fix", name: "fix", component: () => import("./views/Fix.vue"), props: true, meta: { title: "Fix" } },
    { path: "/p/:project/compare/:before/:after", name: "compare", component: () => import("./views/Compare.vue"), props: true, meta: { title: "Before / after" } },
    { path: "/p/:project/revisions", name: "revisions", component: () => import("./views/Revisions.vue"), props: true, meta: { title: "Revisions" } },
    { path: "/p/:project/export", name: "export", component: () => import("./views/Export.vue"), props: true, meta: { title: "Export" } },
    { path: "/p/:project/team", name: "team", component: () => import("./views/Team.vue"), props: true, meta: { title: "Team" } },
    { path: "/p/:project/problems", name: "problems", component: () => import("./views/DataProblems.vue"), props: true, meta: { title: "Data problems" } },
    { path: "/p/:project/settings", name: "project-settings", component: () => import("./views/Settings.vue"), props: true, meta: { title: "Project settings" } },
    { path: "/:rest(.*)*", redirect: "/" },
  ],
});

/** Only places inside this page: `next` comes from the address, which anybody can write. */
export function safeNext(next: unknown): string {
  return typeof next === "string" && /^\/(?![/\\])/.test(next) ? next : "/";
}

router.beforeEach(async (to) => {
  if (to.meta.open) return true;
  if (!me.value) {
    if (!(await loadMe())) return { name: "login", query: { next: to.fullPath } };
    void watchJobs();
  }
  const name = to.params.project;
  if (typeof name === "string" && project.value?.name !== name) await loadProject(name);
  return true;
});

router.afterEach((to) => {
  const name = to.params.project ? ` · ${project.value?.title ?? String(to.params.project)}` : "";
  document.title = `${String(to.meta.title ?? "unhans")}${name} · unhans`;
});

onSignedOut((error) => {
  signedOutBecause.value = error.message;
  me.value = null;
  const here = router.currentRoute.value;
  if (!here.meta.open) void router.replace({ name: "login", query: { next: here.fullPath } });
});
