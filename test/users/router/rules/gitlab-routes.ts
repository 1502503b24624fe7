/** Routes like those of GitLab, with the name that each of them is routed by, and rules for them. */

export interface GitlabRoute {
  template: string;
  /** A path with `acme` for the first segment of a path, and other words elsewhere. */
  example: string;
  /** The same path with `joe.doe` where the example has `acme`, and dots in other segments. */
  dotted: string;
  /** Whether the path may end in a format such as `.json`. */
  acceptsFormat: boolean;
  /** The type of the name that decides. Null if the path has none. */
  type: "ROUTES" | "USERNAMES" | "ORGANIZATION_PATH" | null;
}

type Row = [template: string, type: GitlabRoute["type"], acceptsFormat?: false];

const rows: Row[] = [
  ["/:namespace", "ROUTES"],
  ["/:namespace/:project", "ROUTES"],
  ["/:namespace/:group/:project", "ROUTES"],
  ["/:namespace/:project/edit", "ROUTES"],
  ["/:namespace/:project/activity", "ROUTES"],
  ["/:namespace/:project/-/issues", "ROUTES"],
  ["/:namespace/:project/-/issues/:id", "ROUTES"],
  ["/:namespace/:project/-/issues/:id/designs/:name", "ROUTES", false],
  ["/:namespace/:project/-/issues/new", "ROUTES"],
  ["/:namespace/:project/-/merge_requests", "ROUTES"],
  ["/:namespace/:project/-/merge_requests/:id", "ROUTES"],
  ["/:namespace/:project/-/merge_requests/:id/diffs", "ROUTES"],
  ["/:namespace/:project/-/boards/:id", "ROUTES"],
  ["/:namespace/:project/-/branches", "ROUTES"],
  ["/:namespace/:project/-/branches/:id", "ROUTES"],
  ["/:namespace/:project/-/commit/:id", "ROUTES"],
  ["/:namespace/:project/-/commits/:ref", "ROUTES"],
  ["/:namespace/:project/-/tree/:ref/:path", "ROUTES", false],
  ["/:namespace/:project/-/blob/:ref/:path", "ROUTES", false],
  ["/:namespace/:project/-/raw/:ref/:path", "ROUTES", false],
  ["/:namespace/:project/-/tags/:id", "ROUTES"],
  ["/:namespace/:project/-/pipelines", "ROUTES"],
  ["/:namespace/:project/-/pipelines/:id", "ROUTES"],
  ["/:namespace/:project/-/jobs/:id/trace", "ROUTES"],
  ["/:namespace/:project/-/environments/:id", "ROUTES"],
  ["/:namespace/:project/-/milestones/:id", "ROUTES"],
  ["/:namespace/:project/-/labels", "ROUTES"],
  ["/:namespace/:project/-/wikis/:id", "ROUTES"],
  ["/:namespace/:project/-/wikis/-/confluence", "ROUTES"],
  ["/:namespace/:project/-/discussions/:namespace/:namespace", "ROUTES"],
  ["/:namespace/:project/-/snippets/:id", "ROUTES"],
  ["/:namespace/:project/-/settings/repository", "ROUTES"],
  ["/:namespace/:project/-/packages/:id", "ROUTES"],
  ["/:namespace/:project/-/releases/:tag", "ROUTES"],
  ["/:namespace/:project/-/archive/:id", "ROUTES"],
  ["/:namespace/:project/-/users", "ROUTES"],
  ["/:namespace/:project/issues/:id", "ROUTES"],
  ["/:namespace/:project/uploads/:secret/:filename", "ROUTES", false],
  ["/:namespace/:group/-/group_members", "ROUTES"],
  ["/:namespace/-/epics/:id", "ROUTES"],
  ["/groups/:namespace", "ROUTES"],
  ["/groups/:namespace/:group", "ROUTES"],
  ["/groups/:namespace/-/activity", "ROUTES"],
  ["/groups/:namespace/-/issues", "ROUTES"],
  ["/groups/:namespace/-/milestones/:id", "ROUTES"],
  ["/groups/:namespace/-/settings/ci_cd", "ROUTES"],
  ["/groups/:namespace/:group/-/epics/:id", "ROUTES"],
  ["/users/:namespace", "USERNAMES"],
  ["/users/:namespace/activity", "USERNAMES"],
  ["/users/:namespace/projects", "USERNAMES"],
  ["/users/:namespace/snippets", "USERNAMES"],
  ["/u/:namespace", "USERNAMES"],
  ["/o/:namespace", "ORGANIZATION_PATH"],
  ["/o/:namespace/-/groups/new", "ORGANIZATION_PATH"],
  ["/o/:namespace/dashboard/projects", "ORGANIZATION_PATH"],
  ["/o/:namespace/:namespace/:project/-/wikis/-/confluence", "ORGANIZATION_PATH"],
  ["/o/:namespace/:namespace/:project/-/tree/:ref/:path", "ORGANIZATION_PATH", false],
  ["/-/jira/:namespace/:project", "ROUTES"],
  ["/-/jira/:namespace/:project/commit/:id", "ROUTES"],
  ["/-/jira/:namespace/:project/tree/:ref/:path", "ROUTES"],
  ["/api/v4/projects/:encoded", "ROUTES"],
  ["/api/v4/projects/:encoded/issues/:id", "ROUTES"],
  ["/api/v4/projects/:encoded/repository/files/:file", "ROUTES"],
  ["/api/v4/groups/:namespace", "ROUTES"],
  ["/api/v4/groups/:encoded/members/:id", "ROUTES"],
  ["/api/v4/groups/:namespace/-/packages/debian/dists/:name/Release.gpg", "ROUTES"],
  ["/api/v4/groups/:namespace/-/packages/npm/-/package/:name/dist-tags/:tag", "ROUTES"],
  ["/api/v4/groups/:namespace/-/packages/nuget/v2/$metadata", "ROUTES"],
  ["/api/v4/projects/:namespace/google_cloud/setup/integrations.sh", "ROUTES"],
  ["/api/v4/projects/:namespace/packages/nuget/v2/Packages(Id=':name',Version=':id')", "ROUTES"],
  ["/api/v4/projects/:namespace/packages/nuget/v2/Packages()", "ROUTES"],
  ["/", null, false],
  ["/admin/users", null],
  ["/dashboard/projects", null],
  ["/explore/groups", null],
  ["/help/user/profile", null],
  ["/-/health", null],
  ["/-/profile/keys/:id", null],
  ["/users/sign_in", null],
  ["/users/auth/-/import/github/callback", null],
  ["/users/sign_up/groups/new", null],
  ["/api/v4/projects/import/authorize", null],
  ["/api/v4/projects/user/:id", null],
  ["/api/v4/security/groups/:id/vulnerability_exports", null],
  ["/api/v4/templates/gitlab_ci_ymls/:name", null],
  ["/v2/:namespace/:group/dependency_proxy/containers/:name/manifests/:tag", null, false],
  ["/groups/new", null],
  ["/search", null],
];

/** Words for the parameters that are not the name. */
const WORDS: Readonly<Record<string, [plain: string, dotted: string]>> = {
  ":namespace": ["acme", "joe.doe"],
  ":encoded": ["acme%2Fapp", "joe.doe%2Fapp.js"],
  ":project": ["app", "app.js"],
  ":group": ["web", "web.v2"],
};

const fill = (template: string, spelling: 0 | 1): string =>
  template.replaceAll(/:\w+/g, (parameter) => WORDS[parameter]?.[spelling] ?? (spelling === 0 ? "7" : "7.x"));

export const gitlabRoutes: readonly GitlabRoute[] = rows.map(([template, type, acceptsFormat = true]) => ({
  template,
  example: fill(template, 0),
  dotted: fill(template, 1),
  acceptsFormat,
  type,
}));

const formats = ["json", "atom", "xml", "csv", "ics", "diff", "patch", "zip", "git"];

const path = (pattern: string, more: object = {}): object => ({ type: "path", pattern, formats, ...more });

const names = (type: string, value: string, more: object = {}): object => ({
  action: "classify",
  classify: { type, value, ...more },
  onNotFound: "next",
});

/** Every prefix of a path is tried, so it doesn't matter which of them have owners. */
export const gitlabRules = [
  { id: "organizations", match: path("/o/:name/*"), ...names("ORGANIZATION_PATH", "${name}") },
  {
    id: "groups",
    match: path("/groups/*path", { until: ["-"] }),
    ...names("ROUTES", "${path}", { prefixDepth: 20 }),
  },
  { id: "users", match: path("/users/:name/*"), ...names("USERNAMES", "${name}") },
  { id: "short-users", match: path("/u/:name"), ...names("USERNAMES", "${name}") },
  {
    id: "api-projects",
    match: path("/api/v4/projects/:id/*"),
    ...names("ROUTES", "${id}", { prefixDepth: 20 }),
  },
  {
    id: "api-groups",
    match: path("/api/v4/groups/:id/*"),
    ...names("ROUTES", "${id}", { prefixDepth: 20 }),
  },
  { id: "jira", match: path("/-/jira/*path"), ...names("ROUTES", "${path}", { prefixDepth: 20 }) },
  {
    id: "paths",
    match: path("/*path", {
      until: ["-"],
      notUnder: ["admin", "api", "dashboard", "explore", "groups", "help", "o", "search", "u", "users"],
    }),
    ...names("ROUTES", "${path}", { prefixDepth: 20 }),
  },
  { id: "legacy", action: "first_cell" },
];
