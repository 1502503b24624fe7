export { growthHandlers as handlers } from "./handlers.ts";
export { growthRoutes as routes } from "./routes.ts";
