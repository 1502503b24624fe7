export { changeHandlers as handlers } from "./handlers.ts";
export { changeRoutes as routes } from "./routes.ts";
