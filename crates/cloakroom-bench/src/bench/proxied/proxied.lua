-- Requests of wrk to a proxy: a charge with the number of a random token.

local requests = {}

function init()
  wrk.headers["BT-API-KEY"] = os.getenv("BENCH_KEY")
  wrk.headers["BT-PROXY-URL"] = os.getenv("BENCH_URL")
  wrk.headers["Content-Type"] = "application/json"
  math.randomseed(os.time())
  for id in io.lines(os.getenv("BENCH_IDS")) do
    local body = '{"amount":1000,"currency":"usd","card":{"number":"{{ ' .. id
      .. " | json: '$.number' }}\",\"exp_month\":12,\"exp_year\":2035}}"
    requests[#requests + 1] = wrk.format("POST", os.getenv("BENCH_PATH"), nil, body)
    if #requests == 10000 then break end
  end
end

function request()
  return requests[math.random(#requests)]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"errors":%d}\n',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
