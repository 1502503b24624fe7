export { removalHandlers as handlers } from "./handlers.ts";
export { removalRoutes as routes } from "./routes.ts";
