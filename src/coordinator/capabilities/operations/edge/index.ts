export { operationHandlers as handlers } from "./handlers.ts";
export { operationRoutes as routes } from "./routes.ts";
