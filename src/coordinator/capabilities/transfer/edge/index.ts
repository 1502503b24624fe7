export { transferHandlers as handlers } from "./handlers.ts";
export { transferRoutes as routes } from "./routes.ts";
