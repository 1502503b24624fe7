export { statusHandlers as handlers } from "./handlers.ts";
export { statusRoutes as routes } from "./routes.ts";
