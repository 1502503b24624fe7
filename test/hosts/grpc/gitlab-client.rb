# The calls that GitLab's Rails application makes, with the gRPC library that it uses. Prints what it saw as
# one JSON document.
require 'grpc'
require 'json'
require 'google/protobuf'
require 'google/protobuf/any_pb'
require 'google/protobuf/descriptor_pb'
require 'google/protobuf/timestamp_pb'

pool = Google::Protobuf::DescriptorPool.generated_pool
files = Google::Protobuf::FileDescriptorSet.decode(File.binread(ENV.fetch('DESCRIPTORS'))).file.select do |file|
  file.name.start_with?('gitlab/')
end
files.each { |file| pool.add_serialized_file(Google::Protobuf::FileDescriptorProto.encode(file)) }
# This version only reads a field whose message was looked up before.
files.each { |file| file.message_type.each { |type| pool.lookup("#{file.package}.#{type.name}").msgclass } }

TOPOLOGY = 'gitlab.cells.topology_service'
PACKAGE = "#{TOPOLOGY}.claims.v1"
message = lambda do |name|
  (pool.lookup("#{PACKAGE}.#{name}") || pool.lookup("#{TOPOLOGY}.#{name}")).msgclass
end
credentials = GRPC::Core::ChannelCredentials.new(
  File.read(ENV.fetch('CA')), File.read(ENV.fetch('CLIENT_KEY')), File.read(ENV.fetch('CLIENT_CERT'))
)
channel_args = {
  'grpc.keepalive_time_ms' => 30_000,
  'grpc.keepalive_timeout_ms' => 10_000,
  'grpc.keepalive_permit_without_calls' => 1,
  'grpc.max_receive_message_length' => 10 * 1024 * 1024
}
stub = GRPC::ClientStub.new(ENV.fetch('ADDRESS'), credentials, channel_args: channel_args)
metadata = ENV['KEY'] ? { 'authorization' => "Bearer #{ENV['KEY']}" } : {}
cell = Integer(ENV.fetch('CELL'))

call = lambda do |method, request, deadline: 30, service: "#{PACKAGE}.ClaimService"|
  encode = ->(sent) { request.class.encode(sent) }
  answer = message.call("#{method}Response")
  decode = ->(bytes) { answer.decode(bytes) }
  options = { deadline: Time.now + deadline, metadata: metadata }
  stub.request_response("/#{service}/#{method}", request, encode, decode, **options)
end
code_of = lambda do |&made|
  made.call
  'OK'
rescue GRPC::BadStatus => e
  { code: e.class.name.split('::').last, details: e.details, status: !e.to_rpc_status.nil? }
end
begin_request = lambda do |name, id|
  message.call('BeginUpdateRequest').new(
    cell_id: cell,
    create_records: [{
      claim: { username: name },
      subject: { type: :USER, id: id },
      source: { type: :RAILS_TABLE_USERS, rails_primary_key_id: [id].pack('Q>') }
    }]
  )
end

seen = {}
name = ENV.fetch('NAME')
started = Time.now
lease = call.call('BeginUpdate', begin_request.call(name, 7)).lease_uuid
seen[:lease] = lease.value
seen[:taken] = code_of.call { call.call('BeginUpdate', begin_request.call(name, 8)) }
list = message.call('ListLeasesRequest')
after = Google::Protobuf::Timestamp.new(seconds: started.to_i - 7200)
open_leases = call.call('ListLeases', list.new(cell_id: cell, limit: 100, created_after: after)).leases
seen[:listed] = open_leases.map { |open| open.uuid.value }
2.times { call.call('CommitUpdate', message.call('CommitUpdateRequest').new(cell_id: cell, lease_uuid: lease)) }
records = call.call('ListRecords', message.call('ListRecordsRequest').new(
                                     cell_id: cell, source_type: :RAILS_TABLE_USERS,
                                     source_id_gt: [6].pack('Q>'), source_id_lte: [7].pack('Q>'),
                                     claim_types: [:CLAIM_TYPE_USERNAME]
                                   ))
seen[:records] = records.records.map { |found| [found.metadata.claim.username, found.status] }
seen[:truncated] = records.truncated
rolled_back = call.call('BeginUpdate', begin_request.call("#{name}-2", 9)).lease_uuid
call.call('RollbackUpdate', message.call('RollbackUpdateRequest').new(cell_id: cell, lease_uuid: rolled_back))
seen[:rolled_back] = code_of.call do
  call.call('CommitUpdate', message.call('CommitUpdateRequest').new(cell_id: cell, lease_uuid: rolled_back))
end
other = begin_request.call("#{name}-3", 10)
other.cell_id = cell + 1
seen[:other_cell] = code_of.call { call.call('BeginUpdate', other) }
seen[:late] = code_of.call { call.call('BeginUpdate', begin_request.call("#{name}-4", 11), deadline: -1) }
domain = "#{name}.example"
pages = message.call('BeginUpdateRequest').new(
  cell_id: cell,
  create_records: [[{ pages_domain: domain }, :RAILS_TABLE_PAGES_DOMAINS],
                   [{ pages_unique_domain: name }, :RAILS_TABLE_PROJECT_SETTINGS]].map do |claim, table|
    { claim: claim, subject: { type: :PROJECT, id: 12 },
      source: { type: table, rails_primary_key_id: [12].pack('Q>') } }
  end
)
lease = call.call('BeginUpdate', pages).lease_uuid
call.call('CommitUpdate', message.call('CommitUpdateRequest').new(cell_id: cell, lease_uuid: lease))
classify = lambda do |*claims|
  request = message.call('ClassifyPagesRequest').new(claims: claims)
  found = call.call('ClassifyPages', request, service: "#{TOPOLOGY}.ClassifyService")
  [found.action, found.pages_address, found.matched_claim.claim]
end
seen[:pages] = [
  classify.call({ pages_domain: "not-#{domain}" }, { pages_domain: domain.upcase }),
  classify.call({ pages_unique_domain: name })
]
seen[:no_pages] = code_of.call { classify.call({ pages_domain: "not-#{domain}" }) }
seen[:probes] = %w[ReadinessProbe LivenessProbe].map do |probe|
  code_of.call { call.call(probe, message.call("#{probe}Request").new, service: "#{TOPOLOGY}.HealthService") }
end
puts JSON.generate(seen)
