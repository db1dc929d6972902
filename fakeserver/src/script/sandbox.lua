-- What a script's environment needs of Lua itself: places where errors are caught, since an error that the server raises is
-- not yet the value that a script has to see, and stand-ins for tables that scripts may not change.
local raw_pcall, raw_xpcall, raw_resume, raw_next, raw_type, handler, as_value, is_fatal, refuse_xpcall, real, api = ...
local select, unpack, getmetatable = real.select, real.unpack, real.getmetatable
local string_sub, string_gsub = real.string.sub, real.string.gsub

local many, box, slot = {}, {}, 1

-- Lua's own pcall and xpcall put their status on top of however many results there are without asking for room, which a
-- build of Lua with assertions does not survive. More than a handful therefore travel in a table.
local function few(...)
  if select('#', ...) <= 12 then return ... end
  return many, { n = select('#', ...), ... }
end

-- The function is called out of a table, so that error texts find no name for it, as they do behind the real pcall.
local function call_boxed(...)
  return few(box[slot](...))
end

-- Where an error names its caller's caller there is none to name; here it would be this file.
local function without_place(text)
  if string_sub(text, 1, 8) == 'sandbox:' then return (string_gsub(text, '^sandbox:%d+: ', '')) end
  return text
end

local function finish_pcall(ok, err, ...)
  if ok then
    if err == many then
      local results = ...
      return ok, unpack(results, 1, results.n)
    end
    return ok, err, ...
  end
  local kind = raw_type(err)
  if kind == 'string' then return false, without_place(err) end
  if kind == 'userdata' then
    err = as_value(err)
    kind = raw_type(err)
  end
  if kind == 'table' then
    local text = err.err
    local text_kind = raw_type(text)
    if text_kind == 'string' or text_kind == 'number' then return false, text end
  end
  return false, err
end

local function call_protected(f, ...)
  if raw_type(f) == 'function' then
    box[slot] = f
    return raw_pcall(call_boxed, ...)
  end
  local meta = getmetatable(f)
  local method = raw_type(meta) == 'table' and meta.__call
  if raw_type(method) ~= 'function' then return raw_pcall(f) end
  box[slot] = method
  return raw_pcall(call_boxed, f, ...)
end

function real.pcall(...)
  if select('#', ...) == 0 then return false, 'attempt to call a boolean value' end
  return finish_pcall(call_protected(...))
end

local function finish_resume(ok, err, ...)
  if ok or raw_type(err) ~= 'userdata' then return ok, err, ... end
  return false, as_value(err)
end

local function finish_xpcall(ok, first, ...)
  if ok and first == many then
    local results = ...
    return ok, unpack(results, 1, results.n)
  end
  return finish_resume(ok, first, ...)
end

function real.xpcall(...)
  if select('#', ...) < 2 then refuse_xpcall(...) end
  local f, on_error = ...
  if raw_type(f) ~= 'function' then return raw_xpcall(f, on_error) end
  return finish_xpcall(raw_xpcall(function()
    box[slot] = f
    return call_boxed()
  end, function(err)
    local kind = raw_type(err)
    if kind == 'userdata' then
      -- Raised inside of a handler, the end of the script would be taken for an error of the handler.
      if is_fatal(err) then return err end
      err = as_value(err)
    end
    if kind == 'string' then err = without_place(err) end
    return on_error(err)
  end))
end

function real.coroutine.resume(...)
  return finish_resume(raw_resume(...))
end

local touched = false

-- `table.insert` writes without asking a metatable: whoever reached for it may have written into a stand-in.
local function mark() touched = true end

local function watch_insert(library)
  return function(_, name)
    if name == 'insert' then touched = true end
    return library[name]
  end
end

-- Removes what was written into stand-ins; whether there was anything.
local function clean(stand_ins)
  if not touched then return false end
  touched = false
  local dirty = false
  for stand_in in raw_next, stand_ins do
    local key = raw_next(stand_in)
    while key ~= nil do
      dirty = true
      as_value(stand_in, key)
      key = raw_next(stand_in)
    end
  end
  return dirty
end

local script

-- A script has one result, whatever it returns.
local function main()
  return (script())
end

local given_keys, given_args

-- A function is handed what a script finds in its globals.
local function main_of_function()
  return (script(given_keys, given_args))
end

local function run(function_of_script, call, pcall, keys, argv, is_function)
  script = function_of_script
  api.call, api.pcall = call, pcall
  if is_function then
    given_keys, given_args = keys, argv
    return raw_xpcall(main_of_function, handler)
  end
  real.KEYS, real.ARGV = keys, argv
  return raw_xpcall(main, handler)
end

return run, mark, watch_insert, clean, call_protected
