-- Counts the numbers of several requests, one request after the other, each with all of its numbers
-- or none. Returns for each request the milliseconds until it may be retried, or 0 if it was
-- admitted.
--
-- KEYS: for each request and each of its numbers the set of its group, the volume of its first six
-- digits and that of its first eight; then the block that applies to the request, if any.
-- ARGV: an interval in milliseconds and the number of intervals in the window; then for each
-- request its limit, how many numbers it has, whether a block applies (1) or not (0), and for each
-- number its part of the group and its digest.
--
-- Sets are ordered by the time at which a number was last seen, and expire with their last number.
-- Volumes count the numbers that were new in their set, by interval. A set with a rejected number
-- holds the member `refused` until the window has passed, and admits nothing: a rejected client
-- could otherwise learn which numbers it holds. `allowance.rs` and `memory.rs` implement the same
-- for one node.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local interval, intervals = tonumber(ARGV[1]), tonumber(ARGV[2])
local window = interval * intervals
local newest = math.floor(now / interval)
local key, argument = 0, 2

-- The limit of a group, by the number of members that it may have by chance.
local function allowance(limit, volume)
    local summed = {}
    for i = 0, intervals do summed[i + 1] = newest - i end
    local total = 0
    for _, count in ipairs(redis.call('HMGET', volume, unpack(summed))) do
        total = total + (tonumber(count) or 0)
    end
    local mean = math.min(total, 100000) / 10000
    return limit + math.max(0, math.ceil(mean + 6 * math.sqrt(mean) + 4) - 10)
end

-- The number of members of a set and of incoming numbers that belong to one part.
local function alike(set, coming, part)
    local count = 0
    for _, number in ipairs(redis.call('ZRANGE', set, 0, -1)) do
        if number:sub(1, #part) == part then count = count + 1 end
    end
    for number in pairs(coming) do
        if number:sub(1, #part) == part then count = count + 1 end
    end
    return count
end

-- How long a request with too many numbers has to wait.
local function excess(limit, count)
    local coming, counts = {}, {}
    for i = 1, count do
        local set = KEYS[key + 3 * i - 2]
        local part = ARGV[argument + 2 * i - 1] .. ':'
        local number = part .. ARGV[argument + 2 * i]
        coming[set] = coming[set] or {}
        local seen = counts[set]
        if not seen then
            seen = redis.call('ZCARD', set)
            if seen > 0 then
                seen = seen - redis.call('ZREMRANGEBYSCORE', set, '-inf', now - window)
                local refused_at = redis.call('ZSCORE', set, 'refused')
                if refused_at then
                    return math.max(refused_at + window - now, 1)
                end
            end
        end
        local is_new = seen == 0 or not redis.call('ZSCORE', set, number)
        if is_new and not coming[set][number] then
            coming[set][number] = true
            seen = seen + 1
            if seen > limit and (seen > allowance(limit, KEYS[key + 3 * i - 1])
                or alike(set, coming[set], part) > allowance(limit, KEYS[key + 3 * i])) then
                redis.call('ZADD', set, now, 'refused')
                redis.call('PEXPIRE', set, window)
                return window
            end
        end
        counts[set] = seen
    end
    return 0
end

local function add(volume)
    if redis.call('HINCRBY', volume, newest, 1) == 1 then
        for i = 1, intervals do redis.call('HDEL', volume, newest - intervals - i) end
    end
    redis.call('PEXPIRE', volume, window + interval)
end

local waits = {}
while argument < #ARGV do
    local limit, count = tonumber(ARGV[argument + 1]), tonumber(ARGV[argument + 2])
    local is_watched = ARGV[argument + 3] == '1'
    argument = argument + 3
    local wait = excess(limit, count)
    if is_watched then
        -- PTTL of a missing block is negative.
        wait = math.max(wait, redis.call('PTTL', KEYS[key + 3 * count + 1]))
    end
    if wait == 0 then
        for i = 1, count do
            local set, volume, part = KEYS[key + 3 * i - 2], KEYS[key + 3 * i - 1], KEYS[key + 3 * i]
            local number = ARGV[argument + 2 * i - 1] .. ':' .. ARGV[argument + 2 * i]
            if redis.call('ZADD', set, now, number) == 1 then
                add(volume)
                if part ~= volume then add(part) end
            end
            redis.call('PEXPIRE', set, window)
        end
    end
    waits[#waits + 1] = wait
    key = key + 3 * count + (is_watched and 1 or 0)
    argument = argument + 2 * count
end
return waits
