export { webhookHandlers as handlers } from "./handlers.ts";
export { webhookRoutes as routes } from "./routes.ts";
