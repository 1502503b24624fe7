export { metricsHandlers as handlers } from "./handlers.ts";
export { metricsRoutes as routes } from "./routes.ts";
