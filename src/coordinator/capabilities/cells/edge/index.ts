export { cellHandlers as handlers } from "./handlers.ts";
export { cellRoutes as routes } from "./routes.ts";
