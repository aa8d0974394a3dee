-- SPDX-License-Identifier: BSD-3-Clause
-- sbatch and srun ask memest before they submit. A job that does not fit is
-- refused with the reason, on the user's own machine, and never enters the queue.
-- Install: this file beside slurm.conf, and there: CliFilterPlugins=lua
-- MEMEST is the program (memest if not set); MEMEST_CHECK=no submits unasked.
--
-- Why this is no job_submit.lua: that one runs in slurmctld, which holds its lock
-- on all jobs meanwhile, so each second of it is one in which nothing is scheduled.
-- It runs as SlurmUser on another host, which cannot read the files that a script
-- sources or takes its flags from, and has neither the user's environment nor his
-- working directory. And it would run a user's script with the controller's
-- rights. A filter in the client costs nobody else anything. It is advice: who
-- wants to submit what does not fit can.

-- What is done at an exit code of `memest check`; no entry: the job goes on.
local actions = {
    [3] = "refuse", -- does not fit, or is a coin flip
    [4] = "warn", -- what is not modelled can be larger than the margin
    [2] = "warn", -- flags that the framework would refuse, or memest cannot read
}
local seconds = tonumber(os.getenv("MEMEST_FILTER_SECONDS")) or 20 -- then memest is given up

-- Of a job that does not train there is nothing to say.
local other_jobs = {
    "launched nothing",
    "is no program that memest knows",
    "is not read: of ms-swift",
    "is not read: a recipe",
    "without a script",
    "the scripts that are, are",
}

local function quote(word)
    return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- The words of this sbatch or srun, as the shell would read them.
local function own_command(name)
    local file = io.open("/proc/self/cmdline")
    if file == nil then
        return nil
    end
    local text = file:read("*a")
    file:close()
    local words = {}
    for word in text:gmatch("([^%z]*)%z") do
        words[#words + 1] = quote(word)
    end
    words[1] = name
    return table.concat(words, " ")
end

local function ask(command)
    local program = os.getenv("MEMEST") or "memest"
    local pipe = io.popen("timeout " .. seconds .. " " .. quote(program)
        .. " check -- " .. command .. " 2>&1 </dev/null; echo exit $?")
    if pipe == nil then
        return nil
    end
    local text = pipe:read("*a")
    pipe:close()
    local said, code = text:match("^(.*)exit (%d+)%s*$")
    return said, tonumber(code)
end

-- A script that came on standard input, in a file; nil: it came through a pipe.
local function keep_input()
    local target = io.popen("readlink /proc/" .. "$PPID" .. "/fd/0"):read("*l")
    local input = target ~= nil and target:sub(1, 1) == "/"
        and target:sub(1, 5) ~= "/dev/" and io.open("/proc/self/fd/0")
    if not input then
        return nil
    end
    local path = os.tmpname()
    local copy = io.open(path, "w")
    copy:write(input:read("*a"))
    copy:close()
    input:close()
    return path
end

local function has_script(options)
    return options["type"] ~= "sbatch" or options["wrap"] ~= nil
        or (options["argv"] ~= nil and #options["argv"] > 0)
end

local function is_other_job(said)
    for _, words in ipairs(other_jobs) do
        if said:find(words, 1, true) then
            return true
        end
    end
    return false
end

-- The verdict, and the lines that say of what.
local function tell(log, said)
    local wanted = { ["worst rank"] = true, card = true, ["over by"] = true,
        margin = true, ["end"] = true }
    local number = 0
    for line in said:gmatch("[^\n]+") do
        number = number + 1
        local key = line:sub(3, 14):gsub(" +$", "")
        if number == 1 or (line:sub(1, 2) == "  " and wanted[key]) then
            log("memest: %s", (line:gsub("^memest: %a+: ", "")))
        end
    end
end

function slurm_cli_setup_defaults(options, early_pass)
    return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, pack_offset)
    local kind = options["type"]
    if pack_offset > 0 or os.getenv("MEMEST_CHECK") == "no"
        or os.getenv("SLURM_JOB_ID") ~= nil
        or (kind ~= "sbatch" and kind ~= "srun") then
        return slurm.SUCCESS -- steps of a job that runs already among them
    end
    local command = own_command(kind)
    local input = nil
    if command ~= nil and not has_script(options) then
        input = keep_input()
        if input == nil then
            slurm.log_info("memest: not asked, since the script came through a pipe")
            return slurm.SUCCESS
        end
        command = command .. " " .. quote(input)
    end
    local said, code = nil, nil
    if command ~= nil then
        said, code = ask(command)
    end
    if input ~= nil then
        os.remove(input)
    end
    if said == nil or (code == 2 and is_other_job(said)) then
        return slurm.SUCCESS
    end
    local action = actions[code]
    if action == "refuse" then
        tell(slurm.log_error, said)
        slurm.log_error("not submitted; MEMEST_CHECK=no in front submits it all the same")
        return slurm.ERROR
    end
    tell(action == "warn" and slurm.log_error or slurm.log_info, said)
    return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
    return slurm.SUCCESS
end
