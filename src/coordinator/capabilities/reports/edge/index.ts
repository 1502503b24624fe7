export { routingHandlers as handlers } from "./handlers.ts";
export { routingRoutes as routes } from "./routes.ts";
