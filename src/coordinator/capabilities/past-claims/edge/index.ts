export { historyHandlers as handlers } from "./handlers.ts";
export { historyRoutes as routes } from "./routes.ts";
