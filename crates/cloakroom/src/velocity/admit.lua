-- Counts card numbers of several requests, one request after the other, each with all of its numbers or
-- with none. Tells for each request the milliseconds until it may come again, or 0 when it was let through.
--
-- KEYS: for each request the set of each of its numbers, then the block that it looks at, if it does.
-- ARGV: the window in milliseconds; then for each request its limit, how many numbers it has, whether it
-- looks at a block (1) or not (0), and the numbers.
--
-- Sets are ordered by the time at which a number was last seen, hold as many as the limit says at most, and
-- go with their last number.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local window = tonumber(ARGV[1])
local key, argument = 0, 1

-- How long a request waits whose numbers are too many.
local function excess(limit, count)
    local coming, counts = {}, {}
    for i = 1, count do
        local set, number = KEYS[key + i], ARGV[argument + i]
        local seen = counts[set]
        if not seen then
            seen = redis.call('ZCARD', set)
            if seen > 0 then
                seen = seen - redis.call('ZREMRANGEBYSCORE', set, '-inf', now - window)
            end
        end
        local is_new = seen == 0 or not redis.call('ZSCORE', set, number)
        if is_new and not coming[set .. number] then
            coming[set .. number] = true
            seen = seen + 1
            if seen > limit then
                local oldest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
                return math.max((oldest[2] or now) + window - now, 1)
            end
        end
        counts[set] = seen
    end
    return 0
end

local waits = {}
while argument < #ARGV do
    local limit, count = tonumber(ARGV[argument + 1]), tonumber(ARGV[argument + 2])
    local is_watched = ARGV[argument + 3] == '1'
    argument = argument + 3
    local wait = excess(limit, count)
    if is_watched then
        -- A block that is not there has a negative time left.
        wait = math.max(wait, redis.call('PTTL', KEYS[key + count + 1]))
    end
    if wait == 0 then
        for i = 1, count do
            redis.call('ZADD', KEYS[key + i], now, ARGV[argument + i])
            redis.call('PEXPIRE', KEYS[key + i], window)
        end
    end
    waits[#waits + 1] = wait
    key = key + count + (is_watched and 1 or 0)
    argument = argument + count
end
return waits
