export { partHandlers as handlers } from "./handlers.ts";
export { partRoutes as routes } from "./routes.ts";
