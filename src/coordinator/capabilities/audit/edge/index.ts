export { auditHandlers as handlers } from "./handlers.ts";
export { auditRoutes as routes } from "./routes.ts";
