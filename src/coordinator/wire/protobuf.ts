/** Everything that is generated from `proto/`. */
export * from "./generated/gitlab/cells/topology_service/claims/v1/claim_service_pb.js";
export * from "./generated/gitlab/cells/topology_service/types/v1/types_pb.js";
export * from "./generated/google/rpc/error_details_pb.js";
export * from "./generated/gitlab/cells/topology_service/cell_service_pb.js";
export * from "./generated/gitlab/cells/topology_service/classify_service_pb.js";
export * from "./generated/gitlab/cells/topology_service/health_service_pb.js";
