-- What a script's environment needs of Lua itself: places where errors are caught, since an error that the server raises is
-- not yet the value that a script has to see, and stand-ins for tables that scripts may not change.
local raw_pcall, raw_xpcall, raw_resume, raw_next, raw_type, handler, as_text, as_value, refuse_xpcall, real, api = ...
local select = real.select

local function finish_pcall(ok, err, ...)
  if ok then return ok, err, ... end
  local kind = raw_type(err)
  if kind == 'userdata' then return false, as_text(err) end
  if kind == 'table' then
    local text = err.err
    local text_kind = raw_type(text)
    if text_kind == 'string' or text_kind == 'number' then return false, text end
  end
  return false, err
end

local function finish_resume(ok, err, ...)
  if ok or raw_type(err) ~= 'userdata' then return ok, err, ... end
  return false, as_value(err)
end

function real.pcall(...)
  if select('#', ...) == 0 then return false, 'attempt to call a boolean value' end
  return finish_pcall(raw_pcall(...))
end

function real.xpcall(...)
  if select('#', ...) < 2 then refuse_xpcall(...) end
  local f, on_error = ...
  return finish_resume(raw_xpcall(f, function(err)
    if raw_type(err) == 'userdata' then err = as_value(err) end
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

local function run(script, call, pcall, keys, argv)
  api.call, api.pcall = call, pcall
  real.KEYS, real.ARGV = keys, argv
  return raw_xpcall(script, handler)
end

return run, mark, watch_insert, clean
