export { classifyHandlers as handlers } from "./handlers.ts";
export { classifyRoutes as routes } from "./routes.ts";
