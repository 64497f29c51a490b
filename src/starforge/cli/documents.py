"""The GraphQL documents of the client verbs; a test checks each against schema.graphql."""

_REASON = "reason { code message advice whose since }"
_POD_COUNTS = "podCounts { wanted pending running ready succeeded failed terminating }"
_PROGRESS = "progress { step total fraction stepsPerSecond estimatedEndAt metrics { name value nonFinite } }"
_CLOCKS = "clocks { kind state limitSeconds dueAt }"
_LINE = "number at text marks"
_LOG_SOURCE = "key state lines gaps { afterLine message lines }"
_USER_ERRORS = """
userErrors { __typename code field message ... on CodeError { path rule } ... on ConflictError { workload { id } } }
"""
_NOW = f"""
id name project fleet attempt state outcome exitCode ended gpus createdAt startedAt finishedAt endedAt
{_REASON} {_POD_COUNTS} {_PROGRESS}
observation {{ freshness staleSince problem {{ message }} }}
"""
_LIVE = f"""
{_NOW} {_CLOCKS}
pools {{ name series machines gpusPerMachine reason {{ message }} {_POD_COUNTS} }}
pods {{ name runtime role pool machine phase ready terminating waitingReason nodeName restarts goneAt }}
"""

PREPARE_CODE = f"""
mutation PrepareCode($input: PrepareCodeInput!) {{
  prepareCode(input: $input) {{
    status digest upload {{ method url headers {{ name value }} }} {_USER_ERRORS}
  }}
}}
"""

SUBMIT_JOB = f"""
mutation SubmitJob($input: SubmitJobInput!) {{
  submitJob(input: $input) {{ status job {{ {_NOW} }} {_USER_ERRORS} }}
}}
"""

CANCEL_JOB = f"""
mutation CancelJob($id: ID!, $note: String, $graceSeconds: Int) {{
  cancelJob(id: $id, note: $note, graceSeconds: $graceSeconds) {{ status job {{ {_NOW} }} {_USER_ERRORS} }}
}}
"""

JOBS = f"""
query Jobs($filter: JobFilter, $first: Int!, $after: String) {{
  feed {{ at }}
  jobs(filter: $filter, first: $first, after: $after) {{
    nodes {{ {_NOW} }} pageInfo {{ hasNextPage endCursor }} totalCount totalCountExact
  }}
}}
"""

JOB = f"""
query Job($id: ID!) {{
  feed {{ at }}
  job(id: $id) {{
    {_LIVE}
    createdBy {{ name }} launchedAt logsArchivedAt releasedAt rayJobName
    spec {{ description command image }}
    cancellation {{ requestedAt requestedBy {{ name }} note graceUntil }}
    teardown {{ state reason {{ message advice }} remaining {{ object {{ kind name }} }} }}
    logArchive {{ state lines bytes }}
    capsule {{ digest codeDigest files bytes }}
    logSources {{ key state lines }}
    events(last: 12) {{ nodes {{ type severity message count lastAt attempt }} }}
  }}
}}
"""

LOGS = f"""
query Logs($id: ID!, $attempt: Int, $source: String, $first: Int, $last: Int, $after: String) {{
  job(id: $id) {{
    attempt ended
    logSources(attempt: $attempt) {{ key }}
    logs(attempt: $attempt, source: $source, first: $first, last: $last, after: $after) {{
      source {{ {_LOG_SOURCE} }}
      nodes {{ {_LINE} }}
      pageInfo {{ hasNextPage endCursor }}
      totalCount
    }}
  }}
}}
"""

FOLLOW_JOB = f"""
subscription FollowJob($id: ID!, $after: String) {{
  job(id: $id, after: $after) {{ cursor kind at aspects job {{ {_LIVE} }} }}
}}
"""

FOLLOW_LOGS = f"""
subscription FollowLogs($id: ID!, $attempt: Int, $source: String, $after: String, $tail: Int) {{
  jobLogs(id: $id, attempt: $attempt, source: $source, after: $after, tail: $tail) {{
    cursor kind at end source {{ {_LOG_SOURCE} }} lines {{ {_LINE} }}
  }}
}}
"""

RETRY_JOB = f"""
mutation RetryJob($id: ID!, $key: String, $note: String) {{
  retryJob(id: $id, idempotencyKey: $key, note: $note) {{
    status attempt {{ number state }} job {{ {_NOW} }} {_USER_ERRORS}
  }}
}}
"""

CANCEL_JOBS = f"""
mutation CancelJobs(
  $filter: JobFilter!, $dryRun: Boolean!, $limit: Int!, $maxMatched: Int, $graceSeconds: Int, $note: String
) {{
  cancelJobs(
    filter: $filter, dryRun: $dryRun, limit: $limit, maxMatched: $maxMatched, graceSeconds: $graceSeconds, note: $note
  ) {{
    dryRun matchedCount remainingCount gpus
    outcomes {{ status job {{ id name project state gpus }} }} {_USER_ERRORS}
  }}
}}
"""

SUBMIT_JOBS = f"""
mutation SubmitJobs($items: [SubmitJobInput!]!) {{
  submitJobs(input: {{ items: $items, errorPolicy: INDEPENDENT }}) {{
    outcomes {{ index status job {{ id }} {_USER_ERRORS} }} {_USER_ERRORS}
  }}
}}
"""

FIND_SUBMISSIONS = """
query FindSubmissions($keys: [String!]!, $projects: [String!]) {
  viewer { project }
  jobs(filter: { idempotencyKeys: $keys, projects: $projects }, first: 100) { nodes { id project idempotencyKey } }
}
"""

_BATCH_ROW = "id name attempt revision state outcome ended exitCode reason { code message }"

BATCH_JOBS = f"""
query BatchJobs($filter: JobFilter!, $first: Int!, $after: String) {{
  feed {{ cursor }}
  jobs(filter: $filter, first: $first, after: $after) {{
    nodes {{ {_BATCH_ROW} }} pageInfo {{ hasNextPage endCursor }}
  }}
}}
"""

FOLLOW_BATCH = f"""
subscription FollowBatch($filter: JobFilter!, $after: String) {{
  jobs(filter: $filter, after: $after) {{ cursor kind job {{ {_BATCH_ROW} }} }}
}}
"""

_CHECKS = "checks { kind status message since checkedAt seconds }"

HEALTH = f"""
query Health {{
  feed {{ at }}
  health {{
    status message checkedAt version {_CHECKS}
    fleets {{
      fleet kind status message observerLagSeconds kubernetesVersion operatorVersion rayJobApiVersion {_CHECKS}
      access {{ verb resource allowed }}
    }}
    commands {{ due oldestDueAt parked parkedCommands {{ id kind tries lastTriedAt error workload {{ id name }} }} }}
  }}
}}
"""

_HOLDERS = "holders { kind name workload { id } pool gpus since until releasing }"
_NODE = f"id name series total used free blocked ready cordoned causes {{ cause gpus message since }} {_HOLDERS}"
_SERIES = """
series {
  name labelled logicalGpus total allocatable used free blocked largestFree causes { cause gpus nodes message since }
"""
_FLEET_CAPACITY = "name kind observation { freshness observedAt staleSince problem { message } }"
_WAITING = "waiting { workload { id name } pool series machines gpusPerMachine since message }"

CAPACITY = f"""
query Capacity($fleet: String) {{
  capacity(fleet: $fleet) {{ {_FLEET_CAPACITY} {_SERIES} nodes {{ {_NODE} }} }} {_WAITING} }}
}}
"""

FOLLOW_CAPACITY = f"""
subscription FollowCapacity($fleet: String, $after: String) {{
  capacity(fleet: $fleet, after: $after) {{
    cursor kind at fleet {{ {_FLEET_CAPACITY} {_SERIES} }} {_WAITING} }}
    changedNodes {{ {_NODE} }} removedNodeIds
  }}
}}
"""

FITS = """
query Fits($spec: JobSpecInput!) {
  fits(spec: $spec) {
    verdict message fleet
    fleets {
      fleet verdict message observedAt latestStartAt
      pools { pool verdict message placeable nodes } mustEnd { kind name workload { id } pool gpus nodes until }
    }
    userErrors { __typename code field message }
  }
}
"""

ALL = {name: text for name, text in globals().items() if name.isupper() and isinstance(text, str) and name[0] != "_"}
