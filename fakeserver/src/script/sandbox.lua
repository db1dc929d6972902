-- What a script's environment needs of Lua itself: places where errors are caught, since an error that the server raises is
-- not yet the value that a script has to see, and stand-ins for tables that scripts may not change.
local raw_pcall, raw_xpcall, raw_resume, raw_type, unpack, handler, as_value, is_fatal, refuse, real, stand_ins = ...
local select, getmetatable, tonumber = real.select, real.getmetatable, real.tonumber
local string_sub, string_gsub = real.string.sub, real.string.gsub
local raw_insert, raw_foreach, own_unpack = real.table.insert, real.table.foreach, real.unpack

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
  if select('#', ...) < 2 then refuse.xpcall(...) end
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
  local thread = ...
  if raw_type(thread) ~= 'thread' then refuse.resume(...) end
  return finish_resume(raw_resume(...))
end

-- Lua's own `insert` writes without asking a metatable.
function real.table.insert(...)
  local list, at, value = ...
  if raw_type(list) == 'table' and not stand_ins[list] then
    local count = select('#', ...)
    if count == 2 then return raw_insert(list, at) end
    if count == 3 then
      if raw_type(at) == 'string' then at = tonumber(at) end
      if raw_type(at) == 'number' then return raw_insert(list, at, value) end
    end
  end
  return refuse.insert(...)
end

function real.table.foreach(...)
  local list, f = ...
  if raw_type(list) == 'table' and raw_type(f) == 'function' then
    return raw_foreach(stand_ins[list] or list, f)
  end
  return refuse.foreach(...)
end

-- A function of the server that is given as much as the stack holds has no room left to make what it could need for an error.
-- A small call before it has that made.
local function leave_room(count)
  if count > 7000 then as_value() end
end

-- Lua's own `unpack` fills the stack to its last place, but its counting can overflow: it is given what is sure to fit.
function real.unpack(...)
  local list, from, to = ...
  if raw_type(list) == 'table' then
    local count = select('#', ...)
    if count == 1 then
      if #list < 8000 then
        leave_room(#list)
        return unpack(list)
      end
    elseif count <= 3 and raw_type(from) == 'number' and from % 1 == 0 and from > -1e9 then
      if to == nil then
        if #list - from < 8000 - count then
          leave_room(#list - from)
          return unpack(list, from)
        end
      elseif raw_type(to) == 'number' and to % 1 == 0 and to < 1e9 and to - from < 8000 - count then
        leave_room(to - from)
        return unpack(list, from, to)
      end
    end
  end
  return own_unpack(...)
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

local function run(function_of_script, keys, argv, is_function)
  script = function_of_script
  if is_function then
    given_keys, given_args = keys, argv
    return raw_xpcall(main_of_function, handler)
  end
  real.KEYS, real.ARGV = keys, argv
  return raw_xpcall(main, handler)
end

return run, call_protected
