export { identityHandlers as handlers } from "./handlers.ts";
export { identityRoutes as routes } from "./routes.ts";
