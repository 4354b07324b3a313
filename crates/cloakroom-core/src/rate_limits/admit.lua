-- Admits equal requests one after the other, each to all of its counters or to none.
--
-- Each counter has two keys: a list of admissions, oldest first, and a mark with the time until
-- which the counter is blocked. The first argument is the number of requests, the next two are the
-- number of admissions to reserve and their TTL in microseconds. Each counter has three more
-- arguments: the number of requests a window may hold, the length of the window in microseconds,
-- and how long a rejected request blocks the counter, in milliseconds; 0 for no block.
--
-- Returns the number of admitted requests, including reserved admissions, and four numbers per
-- counter: the remaining capacity before this call; microseconds until it has more capacity; 1 if
-- it rejected the requests that were not admitted; and microseconds until it has capacity for
-- those.

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

-- An entry of a list: time of admission, number of requests before it, and number including it.
-- False for an entry that does not count: it has another format, or is more than a window in the
-- future, because the clock was set back by hours. An entry that is less far in the future counts:
-- clocks are corrected, and a replica's clock may be behind.
local function entry_at(log, place, window)
  local text = redis.call('LINDEX', log, place)
  if not text then
    return nil
  end
  local at, before, after = string.match(text, '^(%d+):(%d+):(%d+)$')
  if not at or tonumber(at) > now + window then
    return false
  end
  return { at = tonumber(at), before = tonumber(before), after = tonumber(after) }
end

-- Removes expired entries; returns the oldest and the newest that count. Removes in large steps
-- first, so that a long list costs little. If the newest entry does not count, none does.
local function look(log, window)
  local last = entry_at(log, -1, window)
  while last == false do
    redis.call('LPOP', log, 100)
    last = entry_at(log, -1, window)
  end
  local function is_over(entry)
    return entry == false or (entry and entry.at + window <= now)
  end
  local first = entry_at(log, 0, window)
  if is_over(first) then
    while is_over(entry_at(log, 99, window)) do
      redis.call('LPOP', log, 100)
    end
    first = entry_at(log, 0, window)
    while is_over(first) do
      redis.call('LPOP', log)
      first = entry_at(log, 0, window)
    end
  end
  return first, first and last
end

-- Microseconds until the requests of a list are one less than its limit.
local function wait_for_room(counter)
  local place, first, entry = 0, counter.first, counter.first
  -- Only a limit that was lowered has more requests than it allows.
  while entry and entry.after - first.before <= counter.count - counter.limit do
    place = place + 1
    entry = entry_at(counter.log, place, counter.window)
  end
  return entry and entry.at + counter.window - now or 0
end

-- How long a counter rejects requests, starting its block; nil if it does not reject.
local function refuse(counter)
  if counter.blocked > 0 then
    return counter.blocked
  elseif counter.count < counter.limit then
    return nil
  end
  local wait = wait_for_room(counter)
  if counter.block > 0 then
    -- Measured from this request, the first one beyond the limit. A client that retries when the
    -- block is over is admitted and does not start the next block.
    wait = math.max(wait, counter.block * 1000)
    redis.call('SET', counter.mark, string.format('%.0f', now + wait), 'PX', math.ceil(wait / 1000))
  end
  return wait
end

local asked, ahead = tonumber(ARGV[1]), tonumber(ARGV[3])
local counters, admitted = {}, asked + tonumber(ARGV[2])
for i = 1, #KEYS / 2 do
  local counter = {
    log = KEYS[2 * i - 1],
    mark = KEYS[2 * i],
    limit = tonumber(ARGV[3 * i + 1]),
    window = tonumber(ARGV[3 * i + 2]),
    block = tonumber(ARGV[3 * i + 3]),
  }
  local first, last = look(counter.log, counter.window)
  counter.first, counter.last = first, last
  counter.count = first and last.after - first.before or 0
  local blocked = counter.block > 0 and (tonumber(redis.call('GET', counter.mark) or 0) - now) or 0
  -- No block is longer than this, unless the clock was set back.
  counter.blocked = math.min(blocked, math.max(counter.window, counter.block * 1000))
  counter.room = counter.blocked > 0 and 0 or math.max(counter.limit - counter.count, 0)
  counter.wait = first and wait_for_room(counter) or counter.window
  admitted = math.min(admitted, counter.room)
  counters[i] = counter
end

local answer = { admitted }
for i, counter in ipairs(counters) do
  if admitted > 0 then
    -- Reserved admissions count from now on, with the time of the end of their TTL. Entries are
    -- ordered by time, whatever the clock does.
    local last, before = counter.last, counter.last and counter.last.after or 0
    local at = admitted > asked and now + ahead or now
    local entry = { at = math.max(at, last and last.at or 0), before = before, after = before + admitted }
    local text = string.format('%.0f:%.0f:%.0f', entry.at, entry.before, entry.after)
    redis.call('RPUSH', counter.log, text)
    -- The list expires at the latest two windows after its last request. The expiry is refreshed
    -- twice per window.
    local half = counter.window / 2
    if not last or math.floor(entry.at / half) ~= math.floor(last.at / half) then
      redis.call('PEXPIRE', counter.log, math.ceil(2 * counter.window / 1000))
    end
    counter.first = counter.first or entry
    counter.count = counter.count + admitted
  end
  local wait = admitted < asked and refuse(counter)
  answer[4 * i - 2], answer[4 * i - 1] = counter.room, counter.wait
  answer[4 * i], answer[4 * i + 1] = wait and 1 or 0, wait or 0
end
return answer
