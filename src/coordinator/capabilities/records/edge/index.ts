export { recordHandlers as handlers } from "./handlers.ts";
export { recordRoutes as routes } from "./routes.ts";
