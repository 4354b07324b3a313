-- Admits a request to all of its counters, or to none.
--
-- Each counter has two keys: a list of the times at which requests were admitted, the oldest first, and a mark
-- that holds the time until which it is blocked. It has three numbers: how many requests a window may hold,
-- the length of the window in microseconds, and for how long a request too many blocks the counter, in
-- milliseconds; 0 if it does not.
--
-- Answers with three numbers per counter: 1 if it refused, what remains, and the microseconds until it has room
-- again (refused) or more room (admitted).

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

-- Whether the entry at this place of a list has left the window. One that lies ahead was made before the
-- clock was set back, and counts no more either.
local function is_over(log, place, window)
  local at = tonumber(redis.call('LINDEX', log, place) or nil)
  return at and (at + window <= now or at > now)
end

-- In large steps first, so that a long list costs little.
local function forget_old(log, window)
  for _, step in ipairs({ 100, 1 }) do
    while is_over(log, step - 1, window) do
      redis.call('LPOP', log, step)
    end
  end
end

-- Microseconds until `limit` entries have become one less.
local function wait_for_room(log, count, limit, window)
  local at = redis.call('LINDEX', log, math.max(count - limit, 0))
  return at and tonumber(at) + window - now or 0
end

local counters, is_refused = {}, false
for i = 1, #KEYS / 2 do
  local log, mark = KEYS[2 * i - 1], KEYS[2 * i]
  local limit, window, block =
    tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  forget_old(log, window)
  local count = redis.call('LLEN', log)
  local counter = { log = log, window = window, refuses = 0, left = limit - count }
  local blocked = block > 0 and (tonumber(redis.call('GET', mark) or 0) - now) or 0
  -- No block is longer than this, unless the clock was set back.
  blocked = math.min(blocked, math.max(window, block * 1000))
  if blocked > 0 then
    counter.refuses, counter.left, counter.wait = 1, 0, blocked
  elseif count >= limit then
    counter.refuses, counter.left = 1, 0
    counter.wait = wait_for_room(log, count, limit, window)
    if block > 0 then
      -- Counted from this request, the first too many. Whoever comes back when the block is over finds
      -- room, and does not begin the next one.
      counter.wait = math.max(counter.wait, block * 1000)
      local over = string.format('%.0f', now + counter.wait)
      redis.call('SET', mark, over, 'PX', math.ceil(counter.wait / 1000))
    end
  else
    counter.wait = count > 0 and wait_for_room(log, count, limit, window) or window
  end
  is_refused = is_refused or counter.refuses == 1
  counters[i] = counter
end

local answer = {}
for i, counter in ipairs(counters) do
  if not is_refused then
    redis.call('RPUSH', counter.log, string.format('%.0f', now))
    redis.call('PEXPIRE', counter.log, math.ceil(counter.window / 1000))
    counter.left = counter.left - 1
  end
  answer[3 * i - 2], answer[3 * i - 1], answer[3 * i] = counter.refuses, counter.left, counter.wait
end
return answer
