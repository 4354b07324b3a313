-- Requests of wrk: existing tokens in random order, or new cards with distinct numbers.

local next_number = tonumber(os.getenv("BENCH_FIRST_NUMBER"))
local ids_file = os.getenv("BENCH_IDS")
-- Prefix of idempotency keys, unique per run; set if creates have idempotency keys.
local once = os.getenv("BENCH_ONCE")
local gets = {}
local head, middle, tail

-- Sixteen digits with a valid check digit. The counter is in front: like cards of real customers, and unlike card
-- enumeration, the numbers differ in their first digits.
local function card_number()
  next_number = next_number + 1
  local digits = "4" .. string.format("%014.0f", next_number):reverse()
  local sum = 0
  for at = 1, 15 do
    local digit = digits:byte(at) - 48
    if at % 2 == 1 then
      digit = digit * 2
      if digit > 9 then digit = digit - 9 end
    end
    sum = sum + digit
  end
  return digits .. (10 - sum % 10) % 10
end

function init()
  wrk.headers["BT-API-KEY"] = os.getenv("BENCH_KEY")
  if ids_file then
    math.randomseed(os.time())
    for id in io.lines(ids_file) do
      gets[#gets + 1] = wrk.format("GET", "/tokens/" .. id)
    end
    return
  end
  -- All requests have the same length, so that they share one header.
  wrk.headers["Content-Type"] = "application/json"
  local mark, key_mark = string.rep("#", 16), string.rep("@", 20)
  if once then
    wrk.headers["BT-IDEMPOTENCY-KEY"] = once .. key_mark
  end
  local body = '{"type":"card","data":{"number":"' .. mark
    .. '","expiration_month":12,"expiration_year":2035}}'
  local whole = wrk.format("POST", "/tokens", nil, body)
  local from, to = whole:find(mark, 1, true)
  head, tail = whole:sub(1, from - 1), whole:sub(to + 1)
  if once then
    from, to = head:find(key_mark, 1, true)
    head, middle = head:sub(1, from - 1), head:sub(to + 1)
  end
end

function request()
  if ids_file then
    return gets[math.random(#gets)]
  end
  if once then
    return head .. string.format("%020.0f", next_number) .. middle .. card_number() .. tail
  end
  return head .. card_number() .. tail
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"errors":%d}\n',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
